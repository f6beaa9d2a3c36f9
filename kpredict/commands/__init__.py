"""One module per command, each with a `command` (click) in it. Modules with a leading underscore
hold what several commands share. Heavy imports (torch, libcst, rules) go inside the functions."""
