// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/model/model_config.hpp>

#include "support/files.hpp"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace frugal_test::model_model_config {

using frugal::FormatError;
using frugal::ModelConfig;

ModelConfig config() {
  return ModelConfig::parse(
      R"({"hidden_size": 384, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "use_cache": true,
          "architectures": ["BertModel"], "sizes": [1, 2, 3], "large": 5000000000, "negative": -1,
          "pad_token_id": null, "rope_scaling": {"factor": 2.5}})",
      "file");
}

template <class T>
void refuses(char const* key, char const* why) {
  CHECK_THROWS_WITH_AS(config().get<T>(key), doctest::Contains(why), FormatError);
}

TEST_CASE("the values of a model's configuration, by their keys") {
  CHECK(config().get<int>("hidden_size") == 384);
  CHECK(config().get<double>("hidden_size") == 384);
  CHECK(config().get<double>("layer_norm_eps") == 1e-12);
  CHECK(config().get<std::string>("hidden_act") == "gelu");
  CHECK(config().get<bool>("use_cache"));
  CHECK(config().get<std::int64_t>("large") == 5'000'000'000);
  CHECK((config().get<std::vector<int>>("sizes") == std::vector<int>{1, 2, 3}));
  CHECK((config().get<std::vector<std::string>>("architectures") ==
         std::vector<std::string>{"BertModel"}));
  CHECK(config().part("rope_scaling").get<double>("factor") == 2.5);
}

TEST_CASE("a key that is missing, or null, has the default") {
  CHECK(config().get<int>("hidden_size", 7) == 384);
  CHECK(config().get<int>("layers", 7) == 7);
  CHECK(config().get<int>("pad_token_id", 7) == 7);
  CHECK(config().has("hidden_size"));
  CHECK_FALSE(config().has("pad_token_id"));
  CHECK_FALSE(config().has("layers"));
}

TEST_CASE("an error names the file and the key") {
  refuses<int>("layers",
               "frugal: \"layers\" cannot be read: it is missing (file): its keys are "
               "hidden_size, layer_norm_eps");
  refuses<int>("pad_token_id", "it is missing");
  refuses<int>("large", "\"large\" cannot be read: it is not an integer of the type");
  refuses<unsigned>("negative", "not an integer of the type");
  refuses<int>("layer_norm_eps", "not an integer of the type");
  refuses<int>("hidden_act", "not an integer of the type");
  refuses<double>("hidden_act", "\"hidden_act\" cannot be read: it is not a number (file): gelu");
  refuses<bool>("hidden_size", "it is not true or false");
  refuses<std::string>("hidden_size", "it is not a text");
  refuses<std::vector<int>>("hidden_size", "it is not a list");
  refuses<std::vector<int>>("architectures", "not an integer of the type");
  CHECK_THROWS_WITH_AS(config().get<bool>("hidden_size", false),
                       doctest::Contains("it is not true or false"), FormatError);
  CHECK_THROWS_WITH_AS(config().part("hidden_size"), doctest::Contains("it is not an object"),
                       FormatError);
  CHECK_THROWS_WITH_AS(config().part("rope_scaling").get<int>("type"),
                       doctest::Contains("(file, rope_scaling)"), FormatError);
}

TEST_CASE("a file, or config.json of a folder, and nothing but a JSON object") {
  support::TemporaryFolder const folder;
  std::ofstream(folder / "config.json") << R"({"a": 1})";
  CHECK(ModelConfig::read(folder.path()).get<int>("a") == 1);
  CHECK(ModelConfig::read(folder / "config.json").get<int>("a") == 1);
  CHECK_THROWS_AS(ModelConfig::read(folder / "nothing"), frugal::StoreError);
  CHECK_THROWS_WITH_AS(ModelConfig::parse("[1]", "file"), doctest::Contains("not a JSON object"),
                       FormatError);
  CHECK_THROWS_WITH_AS(ModelConfig::parse("{\"a\": ", "file"), doctest::Contains("file, byte 6"),
                       FormatError);
}

}  // namespace frugal_test::model_model_config
