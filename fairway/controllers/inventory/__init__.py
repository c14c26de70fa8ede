"""Nodes that can be had: what is learned of their stock, and which are given back."""
