// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace frugal {

/// Which of a run's weights are meant, where a recipe averages them (Average). Without averages all
/// three are the module's own weights.
enum class Weights {
  validated,  ///< those that validations measure, and with that every metric: the averages, unless
              ///< Average::validate is false or there are none yet
  trained,    ///< those that the optimizer updates
  averaged,   ///< the averages, whatever validations measure
};

/// The weights that the last validation has measured. Training or an average may have moved on
/// since, even within one optimizer step: then its metrics are not those of the current weights.
struct Judged {
  std::uint64_t validations = 0;  ///< of the whole run
  std::uint64_t micro_batch = 0;  ///< the counter at the last one; also buffers move with it
  std::uint64_t averaged = 0;     ///< number of weights in the average; 0: it measured the trained
                                  ///< weights

  /// As `micro_batch`: the weights have changed since, and are none that a validation has measured.
  static constexpr auto nothing = static_cast<std::uint64_t>(-1);

  bool operator==(Judged const&) const = default;

  template <class Archive>
  void persist(Archive& archive) {
    // A library without a place for it does without.
    bool dispensable = true;
    archive("dispensable", dispensable);
    archive("validations", validations);
    archive("micro_batch", micro_batch);
    archive("averaged", averaged);
  }
};

}  // namespace frugal
