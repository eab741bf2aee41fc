"""The published systems, one file per paper under the paper's short name."""
