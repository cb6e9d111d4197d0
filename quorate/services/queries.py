"""The queries about topics and configurations: each fills its response from one image.

Unary calls and read streams share them. An image is immutable, so an answer shows one consistent
state even if records are applied meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final, cast

from quorate.services.access import Access
from quorate.services.answers import name_refusal
from quorate.services.describe import (
    DESCRIBED_CONFIG_BYTES_MAX,
    DESCRIBED_PARTITIONS_MAX,
    LISTED_TOPICS_MAX,
    TopicNames,
    add_configs,
    listed_topics,
    topic_by_id,
    topic_by_name,
)
from quorate.services.errors import RequestRefusedError
from quorum.answered import Form
from quorum.errors import ErrorCode
from quorum.v1 import metadata_pb2
from statemachine.command_access import config_action, on_topic
from statemachine.image import MetadataImage
from statemachine.sections.acl_index import AclOperation

_DESCRIBE_CONFIGS: Final = int(AclOperation.DESCRIBE_CONFIGS)
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
        access: Access | None = None,
    ) -> None:
        """Add one page of the topics that the caller may see, ascending by name."""
        limit = LISTED_TOPICS_MAX
        if request.limit > 0:
            limit = min(limit, request.limit)
        names: Sequence[str]
        if access is None:
            names, has_more = self._topic_names.after(image, request.after_name, limit)
        else:
            found = self._visible(image, request.after_name, access)
            names = list(islice(found, limit))
            has_more = next(found, None) is not None
        response.has_more = has_more
        response.topics.extend(listed_topics(image, names))

    def _visible(self, image: MetadataImage, after: str, access: Access) -> Iterator[str]:
        for name in self._topic_names.among(image, after, access.visible_topics(image)):
            if access.allows(image, on_topic(name, AclOperation.DESCRIBE)):
                yield name

    def describe_topics(
        self,
        image: MetadataImage,
        request: metadata_pb2.DescribeTopicsRequest,
        response: metadata_pb2.DescribeTopicsResponse,
        access: Access | None = None,
    ) -> None:
        """Add each requested topic, or its error.

        Raises:
            RequestRefusedError: MESSAGE_TOO_LARGE, too many topics or partitions are requested.
        """
        _bound(len(request.names) + len(request.topic_ids), RESOURCES_PER_REQUEST_MAX, "topics")
        topics = chain(
            (
                _hidden(image, access, name, name=name) or topic_by_name(image, name)
                for name in request.names
            ),
            (
                _hidden(image, access, image.topics.name_of(topic_id), topic_id=topic_id)
                or topic_by_id(image, topic_id)
                for topic_id in request.topic_ids
            ),
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
        access: Access | None = None,
    ) -> None:
        """Add the configuration of each requested resource, or its error.

        Raises:
            RequestRefusedError: MESSAGE_TOO_LARGE, too many resources or bytes are requested.
        """
        _bound(len(request.resources), RESOURCES_PER_REQUEST_MAX, "resources")
        size = 0
        for resource in request.resources:
            found = response.resources.add(resource=resource)
            denied = None if access is None else _denied_configs(image, access, resource)
            if denied is None:
                add_configs(image, found, include_defaults=request.include_defaults)
            else:
                found.error_code = cast("Any", int(denied))
            size += found.ByteSize()
            # Checked after each resource, because ten thousand large ones do not fit in memory.
            _bound(size, DESCRIBED_CONFIG_BYTES_MAX, "bytes of configurations")
            name_refusal("DescribeConfigs", Form.PART, found.error_code)


def _denied_configs(
    image: MetadataImage, access: Access, resource: metadata_pb2.ConfigResource
) -> ErrorCode | None:
    """Return the code of a resource whose configuration the caller may not see, and report it."""
    action = config_action(resource.type, resource.name, _DESCRIBE_CONFIGS)
    return None if access.allows(image, action) else access.report(action)


def _hidden(
    image: MetadataImage, access: Access | None, name_in_image: str | None, **asked: Any
) -> metadata_pb2.TopicDescription | None:
    """Return the refusal of a topic that the caller may not see; None if it may.

    A name gets the same refusal whether or not there is such a topic. It repeats what was ``asked``
    and adds neither name nor id. An unknown id has no name to be checked by.
    """
    if access is None or name_in_image is None:
        return None
    action = on_topic(name_in_image, AclOperation.DESCRIBE)
    if access.allows(image, action):
        return None
    return metadata_pb2.TopicDescription(
        error_code=cast("Any", int(access.report(action))), **asked
    )


def _bound(count: int, most: int, what: str) -> None:
    if count > most:
        raise RequestRefusedError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{count} {what} in one request, more than {most}; request fewer at a time",
        )
