#!/usr/bin/env bash
# Makes the package fencerow/ of the gateway's OpenAPI document. GENERATOR is how openapi-generator is called here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
rm -rf fencerow
# Without the second property a client would refuse an answer that has a field which its document did not know.
${GENERATOR:-openapi-generator-cli} generate -g go -i ../../../docs/reference/openapi.json -o fencerow \
    --additional-properties=packageName=fencerow,withGoMod=false,disallowAdditionalPropertiesIfNotPresent=false \
    --global-property=apis,models,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false \
    --global-property=supportingFiles=client.go:configuration.go:response.go:utils.go
