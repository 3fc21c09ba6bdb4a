// SPDX-License-Identifier: Apache-2.0
#pragma once

// Published architectures, with the names of torchvision's and transformers' tensors, and texts that they
// continue.
#include <frugal/models/bert.hpp>
#include <frugal/models/causal_model.hpp>
#include <frugal/models/generate.hpp>
#include <frugal/models/gpt2.hpp>
#include <frugal/models/llama.hpp>
#include <frugal/models/next_token.hpp>
#include <frugal/models/resnet.hpp>
#include <frugal/models/vit.hpp>
