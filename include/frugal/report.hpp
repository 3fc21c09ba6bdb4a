// SPDX-License-Identifier: Apache-2.0
#pragma once

// What measures, prices, logs and draws: sinks, cost, limits, profiles, audits, plans. What needs a library
// of a component (TensorBoard, a Prometheus endpoint, a webhook) is included by name: docs/sinks.md.

#include <frugal/report/audit.hpp>
#include <frugal/report/budget.hpp>
#include <frugal/report/burn_rate.hpp>
#include <frugal/report/cost_meter.hpp>
#include <frugal/report/csv.hpp>
#include <frugal/report/explain.hpp>
#include <frugal/report/explain_plan.hpp>
#include <frugal/report/find_learning_rate.hpp>
#include <frugal/report/html_report.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/mlperf_log.hpp>
#include <frugal/report/on_metrics.hpp>
#include <frugal/report/plan_memory.hpp>
#include <frugal/report/plan_ranks.hpp>
#include <frugal/report/profile.hpp>
#include <frugal/report/progress.hpp>
#include <frugal/report/prometheus.hpp>
#include <frugal/report/throughput.hpp>
