"""Elastic nodes: what is learned of their stock, and which are given back."""
