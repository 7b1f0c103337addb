"""Stores: how many records a data set has, and record i of them."""
