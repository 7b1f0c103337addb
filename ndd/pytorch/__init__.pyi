# Written by `python -m ndd stubs`. Do not edit.




