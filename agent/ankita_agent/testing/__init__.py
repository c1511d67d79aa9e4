"""Fakes that pass the contract suites of their real adapters. Shipped: `simulate` uses them too."""
