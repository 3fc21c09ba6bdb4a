// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/core/libtorch/low_rank.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Makes the columns of a matrix with at least as many rows orthonormal: by the Gram-Schmidt process
/// where there are one or two, as PyTorch's powerSGD_hook, otherwise by Householder's. A column of
/// zeros stays one in the Gram-Schmidt process, where PyTorch divides it by zero.
inline void orthogonalize(at::Tensor const& columns, double epsilon) {
  std::int64_t const count = columns.size(1);
  if (count > 2) {
    columns.copy_(std::get<0>(at::linalg_qr(columns)));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    at::Tensor const column = columns.narrow(1, i, 1);
    at::Tensor const norm = at::linalg_vector_norm(column);
    column.div_(epsilon == 0 ? norm.masked_fill(norm.eq(0), 1) : norm + epsilon);
    if (i + 1 == count) continue;
    at::Tensor const rest = columns.narrow(1, i + 1, count - i - 1);
    rest.sub_((column * rest).sum(0, /*keepdim=*/true) * column);
  }
}

/// The seeds that PyTorch's powerSGD_hook draws: numpy.random.RandomState(seed).randint(10**9), which
/// takes 30 bits of each number of a Mersenne twister until they are in range.
class FactorSeeds {
 public:
  explicit FactorSeeds(std::uint32_t seed) : engine_(seed) {}
  std::uint64_t next() {
    constexpr std::uint64_t bits = (std::uint64_t{1} << 30) - 1;
    for (;;) {
      std::uint64_t const value = engine_() & bits;
      if (value < 1'000'000'000) return value;
    }
  }

 private:
  std::mt19937 engine_;
};

/// What Wire<PowerSGD<R>> keeps from step to step, by parameter: the error of this process, in units
/// of the mean gradient, and the factor Q, which is the same in all.
///
/// A checkpoint has the errors of each process, which send theirs to the first one tensor by tensor, or
/// their mean. The sum over processes of gradients and errors is all that later steps depend on, so
/// another number of processes goes on with the mean in each.
class PowerSGDMemory {
 public:
  struct One {
    at::Tensor error{};  ///< as the parameter
    at::Tensor q{};      ///< [columns, rank]
  };

  PowerSGDMemory(Communicator& all, PowerSGDSettings const& settings)
      : all_(all), saved_(settings.saved_errors), seed_(settings.seed), seeds_(settings.seed) {}

  /// Before the state is loaded.
  void name(Parameters const& parameters) {
    names_.clear();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      names_[parameters.tensors[i].unsafeGetTensorImpl()] = parameters.names[i];
      sizes_[parameters.names[i]] = parameters.tensors[i].sizes().vec();
    }
  }

  One& of(at::Tensor const& parameter) { return all_of_them_[name_of(parameter)]; }

  bool has_error(at::Tensor const& parameter) const {
    auto const found = all_of_them_.find(name_of(parameter));
    return found != all_of_them_.end() && found->second.error.defined();
  }

  /// Moves what was loaded to the device, and into the order in memory, of `like`.
  void place(std::vector<at::Tensor> const& parameters, std::vector<at::Tensor> const& like) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto const found = all_of_them_.find(name_of(parameters[i]));
      if (found == all_of_them_.end()) continue;
      auto& [error, q] = found->second;
      if (q.defined()) q = q.to(like[i].device());
      if (!error.defined()) continue;
      if (error.device() == like[i].device() && error.strides() == like[i].strides()) continue;
      error = at::empty_like(like[i], error.options().device(like[i].device()),
                             at::MemoryFormat::Preserve)
                  .copy_(error);
    }
  }

  /// The mean of the processes' errors of a parameter, which are then forgotten. All call it at the
  /// same moments.
  at::Tensor take_mean(at::Tensor const& parameter) {
    return mean(std::exchange(of(parameter).error, at::Tensor()));
  }

  /// Of the next random factors.
  std::uint64_t next_seed() {
    ++draws_;
    return seeds_.next();
  }

  template <class Archive>
  void persist(Archive& archive) {
    archive("draws", draws_);
    std::vector<std::string> names;
    for (auto const& [name, one] : all_of_them_) names.push_back(name);
    archive("parameters", names);
    std::uint64_t processes = 1;  // whose errors it has
    if constexpr (Archive::loading) {
      archive("processes", processes);
      all_of_them_.clear();
      seeds_ = FactorSeeds(seed_);
      for (std::uint64_t i = 0; i < draws_; ++i) seeds_.next();
      for (std::string const& name : names) {
        archive.scope(name, [&](auto& inner) { load(inner, name, processes); });
      }
    } else {
      // Otherwise it is a snapshot that each process takes of its own.
      bool const together = archive.whole && all_.size() > 1;
      if (together && saved_ == SavedErrors::each) {
        processes = static_cast<std::uint64_t>(all_.size());
      }
      archive("processes", processes);
      for (std::string const& name : names) {
        archive.scope(name, [&](auto& inner) {
          One& one = all_of_them_[name];
          inner("q", one.q);
          save(inner, one.error, together, processes);
        });
      }
    }
  }

 private:
  static std::string error_of(std::uint64_t process) { return "error." + std::to_string(process); }

  std::string const& name_of(at::Tensor const& parameter) const {
    return names_.at(parameter.unsafeGetTensorImpl());
  }

  at::Tensor mean(at::Tensor error) {
    if (all_.size() == 1) return error;
    if (auto const work = all_.start_sum(error)) all_.complete(work, "the sum of errors");
    return error.div_(all_.size());
  }

  template <class Archive>
  void save(Archive& archive, at::Tensor const& error, bool together, std::uint64_t processes) {
    constexpr char const* what = "the errors of a checkpoint";
    if (!error.defined() || !together) {
      for (std::uint64_t i = 0; i < processes; ++i) archive(error_of(i), error);
      return;
    }
    if (processes == 1) {
      archive(error_of(0), mean(error.clone()));
      return;
    }
    at::Tensor const host = error.cpu().contiguous();
    if (all_.rank() != 0) return all_.send_to_first(host, what);
    archive(error_of(0), host);
    for (int rank = 1; rank < all_.size(); ++rank) {
      at::Tensor const other = at::empty_like(host);
      all_.receive(other, rank, what);
      archive(error_of(static_cast<std::uint64_t>(rank)), other);
    }
  }

  template <class Archive>
  void load(Archive& archive, std::string const& name, std::uint64_t processes) {
    One& one = all_of_them_[name];
    archive("q", one.q);
    auto const read = [&](std::uint64_t process) {
      at::Tensor error;
      archive(error_of(process), error);
      if (error.defined()) require_size(name, error);
      return error;
    };
    if (processes == static_cast<std::uint64_t>(all_.size())) {
      one.error = read(static_cast<std::uint64_t>(all_.rank()));
      return;
    }
    for (std::uint64_t i = 0; i < processes; ++i) {
      at::Tensor const other = read(i);
      if (!other.defined()) return;
      if (i == 0) {
        one.error = other;
      } else {
        one.error.add_(other);
      }
    }
    if (processes > 1) one.error.div_(static_cast<double>(processes));
  }

  void require_size(std::string const& name, at::Tensor const& error) const {
    auto const found = sizes_.find(name);
    if (found == sizes_.end() || error.sizes() == found->second) return;
    std::ostringstream why;
    why << "its error was saved as " << error.sizes() << ", and the parameter is "
        << at::IntArrayRef(found->second);
    throw StateError({.what = "saved state does not fit",
                      .where = "Wire<PowerSGD<R>>, " + name,
                      .why = why.str(),
                      .fix = "Resume with the model that saved it."});
  }

  Communicator& all_;
  SavedErrors saved_;
  std::uint32_t seed_;
  FactorSeeds seeds_;
  std::uint64_t draws_ = 0;
  std::map<at::TensorImpl const*, std::string> names_;
  std::map<std::string, std::vector<std::int64_t>> sizes_;
  std::map<std::string, One> all_of_them_;  ///< by name of the parameter
};

}  // namespace frugal::detail
