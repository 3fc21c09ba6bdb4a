// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/distil/objective.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void require_taught_by(TeacherOutputs const& cached, Lesson const& lesson,
                                     double temperature) {
  auto const refuse = [](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "a batch with cached outputs",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (!lesson.layers.empty()) {
    refuse("Distil compares layers, and a cache has none", "it has the teacher's logits alone",
           "Remove Distil::hidden and Distil::attention, or train without the cache.");
  }
  if (!lesson.settings.teachers.empty() && lesson.identity != cached.identity) {
    refuse("the cache is not of Distil's teachers",
           "it is of " + cached.identity + ", and Distil has " + lesson.identity,
           "Make the cache of these teachers.");
  }
  if (cached.top_k == 0) return;
  if (temperature == 0) {
    refuse("Distil<SquaredError> needs all outputs",
           "the cache has the largest " + std::to_string(cached.top_k),
           "Set TeacherCacheSettings::top_k to 0.");
  }
  if (temperature != cached.temperature) {
    refuse("the cache is of another temperature",
           "it is " + std::to_string(cached.temperature) + " there, and Distil's is " +
               std::to_string(temperature),
           "Make the cache for this Distil: what all other classes have together depends on it.");
  }
}

FRUGAL_INLINE void refuse_no_output() {
  throw ModuleError({.what = "the objective does not say what the student predicted",
                     .where = "Distil",
                     .why = "its Loss::output is undefined",
                     .fix = "Return Loss{.value = loss, .output = logits}."});
}

FRUGAL_INLINE void refuse_no_teacher() {
  throw SettingsError({.what = "Distil has no teacher",
                       .where = "Distil::teachers",
                       .why = "the batch has no teacher's outputs, either",
                       .fix = "Give Distil a Teacher, or train on a CachedTeacher's source."});
}

}  // namespace frugal::detail
