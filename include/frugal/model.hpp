// SPDX-License-Identifier: Apache-2.0
#pragma once

// What changes the model: which of its weights are trained, and in what form.

#include <frugal/model/freeze.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/model/lora/peft.hpp>
#include <frugal/model/model_config.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/model/unfreeze.hpp>
#include <frugal/model/warm_start.hpp>
#include <frugal/model/where.hpp>
