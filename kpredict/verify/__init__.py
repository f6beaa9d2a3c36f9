"""Profiler events → Plan, and the comparison of two plans. Only `measure` imports torch."""
