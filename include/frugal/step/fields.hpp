// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/source/fields.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/error.hpp>
#include <frugal/step/manifest.hpp>

namespace frugal::detail {

/// Finds the tensors of a batch by the names that they had in Python.
class StepFields {
 public:
  explicit StepFields(std::vector<StepManifest::Field> const& fields) {
    for (StepManifest::Field const& each : fields)
      fields_.push_back({each.name, role_of(each.name)});
  }

  /// The batch's tensor for field `at`: the field or the entry of that name; otherwise its data for "data" and
  /// "input_ids", its target for "target" and "labels", and its mask for "mask" and "attention_mask".
  /// DataError if it has none, or an undefined one.
  template <class B>
  at::Tensor const& of(B const& batch, std::size_t at) const {
    Field const& field = fields_[at];
    at::Tensor const* const found = find(batch, field);
    if (found != nullptr && found->defined()) return *found;
    refuse(field.name);
  }

 private:
  enum class Role { data, target, mask, other };
  struct Field {
    std::string name;
    Role role;
  };

  static Role role_of(std::string_view name) {
    if (name == "data" || name == "input_ids") return Role::data;
    if (name == "target" || name == "labels") return Role::target;
    return name == "mask" || name == "attention_mask" ? Role::mask : Role::other;
  }

  template <class B>
  static at::Tensor const* find(B const& batch, Field const& field) {
    if constexpr (FieldsMember<B>) {
      if (!batch.fields.empty()) {
        auto const found = batch.fields.find(field.name);
        if (found != batch.fields.end()) return &found->second;
      }
    } else if constexpr (MapOfTensors<B>) {
      auto const found = batch.find(typename B::key_type(field.name));
      if (found != batch.end()) return &found->second;
    }
    if constexpr (requires {
                    { batch.mask } -> std::convertible_to<at::Tensor const&>;
                  }) {
      if (field.role == Role::mask) return &batch.mask;
    }
    if constexpr (MapOfTensors<B>) {
      if (field.role == Role::data) return entry_if(batch, "data", "input_ids");
      if (field.role == Role::target) return entry_if(batch, "target", "labels");
      return nullptr;
    } else {
      if constexpr (HasData<B>) {
        if (field.role == Role::data) return tensor_in(batch_data(batch));
      }
      if constexpr (HasTarget<B>) {
        if (field.role == Role::target) return tensor_in(batch_target(batch));
      }
      return nullptr;
    }
  }
  template <class Part>
  static at::Tensor const* tensor_in(Part const& part) {
    if constexpr (IsTensor<Part>) {
      return &part;
    } else {
      return nullptr;
    }
  }

  [[noreturn]] static void refuse(std::string const& name) {
    throw DataError(
        {.what = "the batch has no tensor '" + name + "'",
         .where = "StepPackage",
         .why = "the package was exported with a field of that name",
         .fix = "Give the batches a field of that name (FieldsBatch, a map), or export the package "
                "with a pair of data and target."});
  }

  std::vector<Field> fields_;
};

}  // namespace frugal::detail
