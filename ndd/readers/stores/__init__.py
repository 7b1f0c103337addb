"""Stores: the number of records of a data set, and record i of them."""
