// SPDX-License-Identifier: Apache-2.0
#pragma once

// All metrics: those of frugal.hpp, and those of segmentation, detection, calibration and text.

#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/bleu.hpp>
#include <frugal/metrics/calibration_error.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/dice.hpp>
#include <frugal/metrics/for_task.hpp>
#include <frugal/metrics/ignore_index.hpp>
#include <frugal/metrics/iou.hpp>
#include <frugal/metrics/mean_average_precision.hpp>
#include <frugal/metrics/perplexity.hpp>
#include <frugal/metrics/precision_recall.hpp>
#include <frugal/metrics/regression.hpp>
#include <frugal/metrics/roc_auc.hpp>
#include <frugal/metrics/rouge.hpp>
#include <frugal/metrics/span_f1.hpp>
#include <frugal/metrics/top_k.hpp>
