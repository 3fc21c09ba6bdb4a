// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: DevicePrefetch copies the tensors of a batch, and the batch_traits of this batch type do not list them. Write a static each_tensor(batch, f) in batch_traits<YourBatch> that calls f(tensor) for each, or remove DevicePrefetch.
#include <frugal/policy/device_prefetch.hpp>

using namespace frugal;

struct Hidden {
  at::Tensor rows;
};
template <>
struct frugal::batch_traits<Hidden> {
  static std::int64_t samples(Hidden const& batch) { return batch.rows.size(0); }
  static std::int64_t tokens(Hidden const& batch) { return batch.rows.numel(); }
  static void to(Hidden& batch, at::Device device) { batch.rows = batch.rows.to(device); }
#ifdef FRUGAL_REJECT
  // No each_tensor.
#else
  static void each_tensor(Hidden& batch, auto&& show) { show(batch.rows); }
#endif
};

struct HiddenSource {
  void seek(Cursor const&) {}
  std::optional<Hidden> next() { return std::nullopt; }
};

template class frugal::CopiedAhead<HiddenSource>;
