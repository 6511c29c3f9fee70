#!/bin/sh
# ResNet-50 from a model file to a measured run on two devices. Needs a build (make) and takes about half a minute:
#   examples/resnet50.sh [directory of the command]
set -eu
PATH="$(cd "${1:-$(dirname "$0")/../build/release/bin}" && pwd):$PATH"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"
doppler generate resnet50 --weights 1 -o resnet50.onnx
doppler explain resnet50.onnx
doppler calibrate resnet50.onnx --count 2 -o box.json            # what its ops really take here
doppler place resnet50.onnx --machine box.json --time 5s -o placement.json
doppler run resnet50.onnx placement.json --machine box.json --output results
ls -l results
