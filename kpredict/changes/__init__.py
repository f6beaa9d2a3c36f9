"""What to change: edits of a file that keep what it computes, each with what it would bring.

`find` reads a file's text (and its plans) and offers Changes; `predict` analyses the changed
program for each, so that the numbers are a prediction like any other and never a guess. No torch.
"""
