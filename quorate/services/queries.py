"""The queries about topics and configurations: each fills its response from one image.

Unary calls and read streams share them. An image is immutable, so an answer shows one consistent
state even if records are applied meanwhile.
"""

from __future__ import annotations

from itertools import chain

from quorate.services.answers import name_refusal
from quorate.services.describe import (
    DESCRIBED_CONFIG_BYTES_MAX,
    DESCRIBED_PARTITIONS_MAX,
    LISTED_TOPICS_MAX,
    TopicNames,
    listed_topics,
    resource_configs,
    topic_by_id,
    topic_by_name,
)
from quorate.services.errors import RequestRefusedError
from quorum.answered import Form
from quorum.errors import ErrorCode
from quorum.v1 import metadata_pb2
from statemachine.image import MetadataImage

RESOURCES_PER_REQUEST_MAX = 10_000
"""Maximum topics or resources in one request."""


class ImageQueries:
    """Answers queries from an image. Keeps the sorted topic names of the last image.

    Each method adds to ``response``, whose position the caller sets.
    """

    def __init__(self) -> None:
        self._topic_names = TopicNames()

    def list_topics(
        self,
        image: MetadataImage,
        request: metadata_pb2.ListTopicsRequest,
        response: metadata_pb2.ListTopicsResponse,
    ) -> None:
        """Add one page of topics, ascending by name."""
        limit = LISTED_TOPICS_MAX
        if request.limit > 0:
            limit = min(limit, request.limit)
        names, response.has_more = self._topic_names.after(image, request.after_name, limit)
        response.topics.extend(listed_topics(image, names))

    def describe_topics(
        self,
        image: MetadataImage,
        request: metadata_pb2.DescribeTopicsRequest,
        response: metadata_pb2.DescribeTopicsResponse,
    ) -> None:
        """Add each requested topic, or its error.

        Raises:
            RequestRefusedError: MESSAGE_TOO_LARGE, too many topics or partitions are requested.
        """
        _bound(len(request.names) + len(request.topic_ids), RESOURCES_PER_REQUEST_MAX, "topics")
        topics = chain(
            (topic_by_name(image, name) for name in request.names),
            (topic_by_id(image, topic_id) for topic_id in request.topic_ids),
        )
        partitions = 0
        for topic in topics:
            partitions += len(topic.partitions)
            _bound(partitions, DESCRIBED_PARTITIONS_MAX, "partitions")
            name_refusal("DescribeTopics", Form.PART, topic.error_code)
            response.topics.append(topic)

    def describe_configs(
        self,
        image: MetadataImage,
        request: metadata_pb2.DescribeConfigsRequest,
        response: metadata_pb2.DescribeConfigsResponse,
    ) -> None:
        """Add the configuration of each requested resource, or its error.

        Raises:
            RequestRefusedError: MESSAGE_TOO_LARGE, too many resources or bytes are requested.
        """
        _bound(len(request.resources), RESOURCES_PER_REQUEST_MAX, "resources")
        size = 0
        for resource in request.resources:
            found = resource_configs(image, resource, include_defaults=request.include_defaults)
            size += found.ByteSize()
            # Checked after each resource, because ten thousand large ones do not fit in memory.
            _bound(size, DESCRIBED_CONFIG_BYTES_MAX, "bytes of configurations")
            name_refusal("DescribeConfigs", Form.PART, found.error_code)
            response.resources.append(found)


def _bound(count: int, most: int, what: str) -> None:
    if count > most:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{count} {what} in one request, more than {most}; request fewer at a time",
        )
