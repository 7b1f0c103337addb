"""Stubs (`.pyi`): the signatures of operators, as a type checker and an IDE see them.

`@operator` builds the public functions when ndd is imported, which no type checker can follow. So `python -m ndd stubs`
writes down what it would see: from the registry of operators and their annotations, a file beside each public module
(`ndd/__init__.pyi`, `ndd/random/__init__.pyi`, ...). Never edit these; after a change of a signature run the command, and
a test says when it was forgotten. Everything else is typed in its own `.py` file.

* `annotation`: how the annotation and the default of an argument are written in a stub.
* `overloads`: an operator as overloads, for Tensors and for Batches, and for each number of outputs.
* `module`: the whole stub of a module.
* `command`: which modules have one, and `python -m ndd stubs`.
"""
