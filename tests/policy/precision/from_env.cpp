// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/precision/from_env.hpp>

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/training.hpp"

#include <cstdlib>
#include <string>

namespace frugal_test::policy_precision_from_env {

using namespace frugal_test::support;
using frugal::BF16;
using frugal::FP16;
using frugal::FP32;
using frugal::Precision;
using All = Precision<frugal::FromEnv<FP32, BF16, FP16>>;

/// Sets FRUGAL_PRECISION for its lifetime.
class Environment {
 public:
  explicit Environment(char const* value) {
    if (value == nullptr) {
      ::unsetenv(All::variable);
    } else {
      ::setenv(All::variable, value, 1);
    }
  }
  Environment(Environment const&) = delete;
  ~Environment() { ::unsetenv(All::variable); }
};

template <class P>
Trained trained_by(char const* value) {
  Environment const environment(value);
  TrainingFile const file;
  return train_as(file, case_named(file.file.at("cases"), "plain"), RowWeighted{false}, P{});
}

template <class Format>
void equals(char const* value) {
  CAPTURE(value);
  auto const chosen = trained_by<All>(value);
  auto const written = trained_by<Precision<Format>>(nullptr);
  CHECK(same_bits(tensors_of(*chosen.net), tensors_of(*written.net)));
  CHECK(chosen.losses == written.losses);
}

TEST_CASE("the environment selects a format, and the run has that format's bits") {
  equals<FP32>("FP32");
  equals<BF16>("BF16");
  equals<BF16>("bf16");
  equals<FP16>("FP16");
}

TEST_CASE("without the variable the first format is used") {
  equals<FP32>("");
  Environment const nothing(nullptr);
  CHECK((Precision<frugal::FromEnv<BF16, FP32>>::chosen() == "BF16"));
}

TEST_CASE("a value that is unknown, or not compiled in, is refused with the list of formats") {
  for (char const* const value : {"FP8", "bfloat16", " BF16", "FP16"}) {
    CAPTURE(value);
    Environment const environment(value);
    try {
      Precision<frugal::FromEnv<FP32, BF16>>::chosen();
      FAIL("it was taken");
    } catch (frugal::SettingsError const& error) {
      CHECK(std::string(error.what()).find("FP32, BF16") != std::string::npos);
      CHECK(std::string(error.what()).find(value) != std::string::npos);
    }
  }
}

TEST_CASE("a run resumes in the format in which it was saved, or not at all") {
  TrainingFile const file;
  auto const save = [&](frugal::StateDict& memory) {
    Environment const environment("BF16");
    All::State state(All{}, frugal::RecipeFacts{});
    frugal::StateWriter writer(memory);
    state.persist(writer);
  };
  frugal::StateDict memory;
  save(memory);
  Environment const environment("FP32");
  All::State state(All{}, frugal::RecipeFacts{});
  frugal::StateReader reader(memory);
  try {
    state.persist(reader);
    FAIL("it was loaded");
  } catch (frugal::StateError const& error) {
    CHECK(std::string(error.what()).find("FRUGAL_PRECISION=BF16") != std::string::npos);
  }
}

}  // namespace frugal_test::policy_precision_from_env
