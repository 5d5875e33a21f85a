"""Tests that hold however often one looks: e-processes, confidence sequences, change detection."""
