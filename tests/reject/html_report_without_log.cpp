// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: HtmlReport needs Log: the report is drawn from its lines. Add Log<Every<100>>.
#include <frugal/policy/optimize.hpp>
#include <frugal/report/html_report.hpp>
#include <frugal/report/log.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/linear.h>

#include <vector>

using namespace frugal;

template <class... Ps>
void train() {
  std::vector<Batch> batches;
  Trainer<torch::nn::Linear, CrossEntropy, Optimize<SGD>, Ps...> trainer(torch::nn::Linear(2, 2));
  static_cast<void>(trainer.fit(batches));
}
template void train<Log<Every<10>>, HtmlReport<>>();
#ifdef FRUGAL_REJECT
template void train<HtmlReport<>>();
#endif
