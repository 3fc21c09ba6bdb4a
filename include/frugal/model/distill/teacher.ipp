// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/distill/teacher.hpp>

#include <frugal/core/libtorch/autocast.hpp>
#include <frugal/core/libtorch/meta_meter.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/module_identity.hpp>

namespace frugal {

FRUGAL_INLINE std::string Teacher::identity() const {
  std::string text = module_identity(*root_);
  if (options_.autocast) text += std::string(", autocast ") + at::toString(*options_.autocast);
  return text;
}

FRUGAL_INLINE void Teacher::begin() {
  if (!(options_.weight > 0) || options_.weight > 1e30) {
    throw SettingsError({.what = "a teacher has the weight " + std::to_string(options_.weight),
                         .where = "TeacherOptions::weight",
                         .why = "it is a share of the distillation loss",
                         .fix = "Give a number above 0; 1 is the default."});
  }
  for (at::Tensor const& each : root_->parameters()) {
    if (!probe_.defined() || (each.is_floating_point() && !probe_.is_floating_point())) {
      probe_ = each;
    }
  }
}

FRUGAL_INLINE at::Tensor Teacher::ask(detail::AnyBatch const& batch, at::Device device) const {
  at::NoGradGuard const no_gradients;
  detail::HeldEvaluation const evaluation(*root_);
  // A plan of memory runs on shapes alone, and the weights must survive it.
  std::optional<detail::OnMeta> on_meta;
  if (device.is_meta()) {
    on_meta.emplace(*root_);
  } else if (probe_.defined() && probe_.device() != device) {
    root_->to(device);
  }
  std::optional<detail::AutocastGuard> precision;  // on meta there is no autocast
  if (!device.is_meta()) precision.emplace(device.type(), options_.autocast);
  std::optional<at::ScalarType> type;
  if (!options_.autocast && probe_.defined() && probe_.is_floating_point()) {
    type = probe_.scalar_type();
  }
  at::Tensor logits = ask_(batch, type);
  if (logits.defined()) return logits;
  throw ModuleError({.what = "the teacher returned an undefined tensor",
                     .where = "Teacher",
                     .why = "",
                     .fix = "Return its logits."});
}

FRUGAL_INLINE void Teacher::refuse_batch(detail::AnyBatch const& batch,
                                         std::type_info const& wanted) {
  throw DataError({.what = "the teacher cannot be asked for this batch",
                   .where = std::string("a batch of type ") + batch.type.name(),
                   .why = std::string("its forward function takes ") + wanted.name(),
                   .fix = "Give Teacher a second argument, `[](Net& net, MyBatch const& batch) "
                          "{ return net->forward(batch.ids); }`."});
}

}  // namespace frugal
