#!/bin/sh
# Generate the Go stubs of proto/ and build the program. Needs Go and protoc; nothing of Quorate.
#
# PROTOC: the compiler; by default the one in the checkout's .venv/proto-toolchain, else `protoc`.
set -eu
cd "$(dirname "$0")"
proto=../../proto
tools=$PWD/bin
tool_python=../../.venv/proto-toolchain/bin/python
if [ -z "${PROTOC:-}" ]; then
    if [ -x "$tool_python" ]; then PROTOC="$tool_python -m grpc_tools.protoc"; else PROTOC=protoc; fi
fi
GOBIN=$tools go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$tools go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
package=quorate.example/topicleaders/quorumv1
set --
for file in common errors commands records metadata; do
    set -- "$@" "--go_opt=Mquorum/v1/$file.proto=$package" "--go-grpc_opt=Mquorum/v1/$file.proto=$package"
done
mkdir -p quorumv1
PATH=$tools:$PATH $PROTOC --proto_path="$proto" "$@" \
    --go_out=. --go_opt=module=quorate.example/topicleaders \
    --go-grpc_out=. --go-grpc_opt=module=quorate.example/topicleaders \
    quorum/v1/common.proto quorum/v1/errors.proto quorum/v1/commands.proto quorum/v1/records.proto quorum/v1/metadata.proto
go mod tidy
go build -o topicleaders .
