"""maya serve-bench: a serving engine under load, in virtual time (docs/serving.md)."""
