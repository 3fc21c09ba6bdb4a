// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/run/log_keys.hpp>
#include <frugal/core/run/scalars.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// The weighted means of an objective's scalars since they were last taken. Each policy that shows
/// them has one (FitBegin::follow).
class ScalarSpan {
 public:
  using Mean = std::pair<std::string, double>;

  FRUGAL_INLINE void add(std::string const& name, double sum, double weight) {
    auto found = std::find_if(sums_.begin(), sums_.end(),
                              [&](Sum const& each) { return each.name == name; });
    if (found == sums_.end()) found = sums_.insert(found, Sum{name});
    found->sum += sum;
    found->weight += weight;
  }

  /// `f(name, sum, weight)` for each, in the order in which their names appeared.
  template <class F>
  void each(F&& f) const {
    for (Sum const& each : sums_) f(each.name, each.sum, each.weight);
  }

  /// In the order in which their names appeared; empties the span. NaN if all weights were 0.
  FRUGAL_INLINE std::vector<Mean> take() {
    std::vector<Mean> means;
    for (Sum const& each : sums_) means.emplace_back(each.name, each.sum / each.weight);
    sums_.clear();
    return means;
  }

  /// Sum and weight of each, by name: combines those of all processes.
  template <class Join>
  void reduce(Join&& join) {
    std::sort(sums_.begin(), sums_.end(),
              [](Sum const& a, Sum const& b) { return a.name < b.name; });
    for (Sum& each : sums_) {
      each.sum = join(each.sum);
      each.weight = join(each.weight);
    }
  }

  template <class Archive>
  void persist(Archive& archive) {
    std::vector<std::string> names;
    std::vector<double> sums, weights;
    for (Sum const& each : sums_) {
      names.push_back(each.name);
      sums.push_back(each.sum);
      weights.push_back(each.weight);
    }
    archive("names", names);
    archive("sums", sums);
    archive("weights", weights);
    if (!Archive::loading) return;
    sums_.clear();
    for (std::size_t i = 0; i < names.size() && i < sums.size() && i < weights.size(); ++i) {
      sums_.push_back({names[i], sums[i], weights[i]});
    }
  }

 private:
  struct Sum {
    std::string name;
    double sum = 0;
    double weight = 0;
  };
  std::vector<Sum> sums_;
};

/// The scalars of objectives (Loss::scalars), for the spans of the policies that show them.
/// A scalar on a device is kept as a tensor until the losses are read.
class ScalarAccumulator {
 public:
  static constexpr std::size_t a_chunk = 4096;

  /// The span must outlive the ledger's use.
  void follow(ScalarSpan& span) {
    if (std::find(spans_.begin(), spans_.end(), &span) == spans_.end()) spans_.push_back(&span);
  }

  /// Throws ShapeError for one that is not a single number, with its name and shape, and
  /// SettingsError for a name that a log's line has already.
  FRUGAL_INLINE void add(Scalars const& scalars, double weight) {
    for (Scalars::Value const& each : scalars) {
      std::size_t const name = index_of(each.name);
      if (!each.is_number) require_one(each);
      if (spans_.empty()) continue;
      // A value of weight 0 is not read: it is often a mean over nothing.
      bool const counts = weight != 0;
      Pending entry{name, weight, counts ? each.number : 0.0, {}};
      if (counts && !each.is_number) {
        if (each.tensor.is_cpu()) {
          entry.value = each.tensor.item<double>();
        } else {
          entry.tensor = each.tensor;
        }
      }
      pending_.push_back(std::move(entry));
      ++added_;
    }
    if (!marked_ && pending_.size() >= a_chunk) shorten();
  }

  /// Passes pending scalars to the spans; one wait for a device, however many there are.
  FRUGAL_INLINE void read_pending() {
    if (pending_.empty()) return;
    std::vector<at::Tensor> on_device;
    for (Pending const& each : pending_) {
      if (each.tensor.defined()) on_device.push_back(each.tensor);
    }
    std::vector<double> const read = values_of(on_device);
    std::size_t next = 0;
    for (Pending const& each : pending_) {
      double const value = each.tensor.defined() ? read[next++] : each.value;
      // A mean over several: it has weight 0 where they had.
      enter(each, each.is_sum ? value : value * each.weight);
    }
    pending_.clear();
  }

  /// Forgets pending scalars.
  void reset() { pending_.clear(); }

  /// The ledger's position, to return to. Valid until pending scalars are read.
  using Mark = std::uint64_t;
  FRUGAL_INLINE Mark mark() {
    marked_ = true;
    if (pending_.size() >= a_chunk) shorten();
    return added_;
  }
  FRUGAL_INLINE void go_back(Mark mark) {
    for (; added_ > mark && !pending_.empty(); --added_) pending_.pop_back();
    added_ = mark;
  }

 private:
  struct Pending {
    std::size_t name;
    double weight;
    double value;
    at::Tensor tensor;
    bool is_sum = false;  ///< the tensor has been multiplied by the weights in it
  };

  /// In the order in which they came up.
  FRUGAL_INLINE std::size_t index_of(std::string const& name) {
    auto const found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    require_free(name);
    names_.push_back(name);
    return names_.size() - 1;
  }

  void enter(Pending const& entry, double sum) {
    for (ScalarSpan* const span : spans_) span->add(names_[entry.name], sum, entry.weight);
  }

  /// Numbers go to their spans; the tensors of a name become one, where they are, without a wait.
  FRUGAL_INLINE void shorten() {
    std::vector<Pending> all;
    all.swap(pending_);
    for (std::size_t name = 0; name < names_.size(); ++name) {
      Pending sum{name, 0, 0, {}, true};
      for (Pending const& each : all) {
        if (each.name != name) continue;
        if (!each.tensor.defined()) {
          enter(each, each.value * each.weight);
          continue;
        }
        at::Tensor const value = each.tensor.to(at::kDouble).reshape({});
        at::Tensor const part = each.is_sum ? value : value * each.weight;
        sum.tensor = sum.tensor.defined() ? sum.tensor + part.to(sum.tensor.device()) : part;
        sum.weight += each.weight;
      }
      if (sum.tensor.defined()) pending_.push_back(std::move(sum));
    }
  }

  FRUGAL_INLINE static std::vector<double> values_of(std::vector<at::Tensor> const& tensors) {
    std::vector<double> values;
    values.reserve(tensors.size());
    for (std::size_t first = 0; first < tensors.size();) {
      // Scalars of one device are read together; a run may have moved meanwhile.
      std::vector<at::Tensor> together;
      at::Device const device = tensors[first].device();
      for (; first < tensors.size() && tensors[first].device() == device; ++first) {
        together.push_back(tensors[first].reshape({}).to(at::kDouble));
      }
      at::Tensor const host = at::stack(together).cpu();
      auto const* const value = static_cast<double const*>(host.const_data_ptr());
      values.insert(values.end(), value, value + host.numel());
    }
    return values;
  }

  FRUGAL_INLINE static void require_one(Scalars::Value const& each) {
    if (each.tensor.defined() && each.tensor.numel() == 1 && !each.tensor.is_complex()) return;
    throw ShapeError({.what = "the scalar '" + each.name + "' is not a single number but " +
                              detail::shape_text(each.tensor),
                      .where = "Loss::scalars",
                      .why = "a scalar that is logged with a loss has shape []",
                      .fix = "Take its mean() or sum() in the objective."});
  }
  FRUGAL_INLINE static void require_free(std::string const& name) {
    if (!name.empty() && !detail::is_log_key(name)) return;
    throw SettingsError({.what = "a scalar is called '" + name + "'",
                         .where = "Loss::scalars",
                         .why = name.empty() ? "a log's line has to name it"
                                             : "a log's line has another value of that name",
                         .fix = "Give it another name."});
  }

  std::vector<std::string> names_;
  std::vector<ScalarSpan*> spans_;
  std::vector<Pending> pending_;
  std::uint64_t added_ = 0;  ///< to `pending_`, so far
  bool marked_ = false;
};

}  // namespace frugal
