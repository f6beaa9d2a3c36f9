# Checks that need more than pytest. On a machine with a GPU and torch nothing is installed or fetched.
PYTHON ?= python
JOBS ?= 4

.PHONY: gpu-check
gpu-check:  ## measure the article, the fixtures and 30 programs; writes gpu-bundle.json and gpu-report.txt
	PYTHONPATH=$(CURDIR) $(PYTHON) tests/gpu/check.py --jobs $(JOBS)
