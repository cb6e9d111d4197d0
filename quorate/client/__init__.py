"""The client library. Depends on nothing of ours but the generated stubs in ``quorum.v1``."""
