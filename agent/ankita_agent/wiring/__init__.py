"""Puts agent and commands together for this machine: the only package that knows both sides. No logic."""
