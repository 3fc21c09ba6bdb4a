// SPDX-License-Identifier: Apache-2.0
#pragma once

// What changes the model: published weights, which of them are trained, and in what form they are kept.

#include <frugal/model/alternate.hpp>
#include <frugal/model/cached_teacher.hpp>
#include <frugal/model/distill.hpp>
#include <frugal/model/export_torchscript.hpp>
#include <frugal/model/freeze.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/lora.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/model/lora/peft.hpp>
#include <frugal/model/lottery_ticket.hpp>
#include <frugal/model/model_config.hpp>
#include <frugal/model/module_identity.hpp>
#include <frugal/model/prune.hpp>
#include <frugal/model/qat.hpp>
#include <frugal/model/quantize.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/model/structured.hpp>
#include <frugal/model/warm_start.hpp>
#include <frugal/model/where.hpp>
