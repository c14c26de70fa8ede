"""Tests of how the suite itself runs."""
