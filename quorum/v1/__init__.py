"""Generated protobuf and gRPC stubs of `proto/quorum/v1`. Do not edit the files beside this one.

`python proto/generate.py` writes them; they are committed so that readers, type checkers and
installations need no compiler.
"""
