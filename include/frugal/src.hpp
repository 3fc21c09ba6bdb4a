// SPDX-License-Identifier: Apache-2.0
#pragma once

// The first source file of frugal::compiled includes this and nothing else; src_cluster.hpp is for the second one.
// Without CMake: docs/install.md#installing.
#ifdef FRUGAL_INLINE
#error "frugal: frugal/src.hpp belongs into a source file of its own, which includes nothing else."
#endif
#undef FRUGAL_COMPILED
#define FRUGAL_INLINE

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/losses.hpp>
#include <frugal/metrics.hpp>
#include <frugal/model.hpp>
#include <frugal/models.hpp>
#include <frugal/report.hpp>
#include <frugal/version.hpp>
// All of compare.hpp and search.hpp but themselves, which need Boost.Hana, and what no umbrella includes.
#include <frugal/policy/optimize/partition.hpp>
#include <frugal/report/compare/comparison.hpp>
#include <frugal/report/compare/job.hpp>
#include <frugal/report/html/comparison_page.hpp>
#include <frugal/report/sink/mlflow_run.hpp>
#include <frugal/search/engine.hpp>
#include <frugal/search/forecast.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/journal.hpp>
#include <frugal/search/outcome.hpp>
#include <frugal/search/results/importance.hpp>
#include <frugal/search/results/winner_code.hpp>
#include <frugal/search/sampler/evolution.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/sampler/sobol.hpp>
#include <frugal/search/sampler/tpe.hpp>
#include <frugal/search/schedule/median_stop.hpp>
#include <frugal/search/schedule/successive_halving.hpp>
#include <frugal/search/schedule/whole_trials.hpp>
#include <frugal/step/machine.hpp>
#include <frugal/step/manifest.hpp>
