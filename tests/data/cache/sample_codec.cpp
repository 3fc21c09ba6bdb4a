// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/cache/sample_codec.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/data/tensor_dtype.hpp>

#include <torch/data/example.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal_test::data_cache_sample_codec {

using frugal::Batch;
using frugal::CacheableSample;
using frugal::detail::content_bytes;
using frugal::detail::sample_signature;
using frugal::detail::SampleDecoder;
using frugal::detail::SampleEncoder;

struct Tokens {
  at::Tensor ids;
  int length = 0;
  std::vector<std::string> words;
  static constexpr std::tuple parts{&Tokens::ids, &Tokens::length, &Tokens::words};
};
struct Labelled {  // shows its tensors, and has more than these
  at::Tensor ids;
  int label = 0;
  void each_tensor(auto&& f) { f(ids); }
};
struct WithName {
  at::Tensor data, target;
  std::string name;
};

static_assert(CacheableSample<Tokens> && CacheableSample<Batch>);
static_assert(CacheableSample<torch::data::Example<>>);
static_assert(!CacheableSample<Labelled> && !CacheableSample<WithName>);  // would lose a part
static_assert(!CacheableSample<int*> && !CacheableSample<std::vector<int*>>);
static_assert(!CacheableSample<std::map<int, int>>);

template <class S>
std::vector<std::byte> encoded(S const& sample) {
  SampleEncoder encoder;
  encoder.add(sample);
  return encoder.bytes();
}
template <class S>
S decoded(std::span<std::byte const> bytes) {
  return SampleDecoder(bytes, "sample 7").all<S>();
}
template <class S>
S round_trip(S const& sample) {
  return decoded<S>(encoded(sample));
}

TEST_CASE("tensors of every dtype come back, with their bits") {
  for (auto const& [type, stored] : frugal::detail::stored_types) {
    CAPTURE(at::toString(type));
    at::Tensor const bytes = at::arange(48, at::kInt).to(at::kByte);
    at::Tensor const tensor =
        type == at::kBool ? bytes.remainder(2).to(at::kBool) : bytes.view(type);
    at::Tensor const back = round_trip(tensor);
    CHECK(back.dtype() == tensor.dtype());
    CHECK(back.sizes() == tensor.sizes());
    CHECK(at::equal(back.view(at::kByte), tensor.view(at::kByte)));
  }
}

TEST_CASE("shapes come back: scalars, empty ones, undefined ones, ones with gaps") {
  for (at::Tensor const& tensor :
       {at::scalar_tensor(3), at::zeros({0}), at::zeros({3, 0, 2}), at::rand({2, 3, 4, 5}),
        at::rand({6, 4}).t(), at::rand({4}).expand({3, 4})}) {
    at::Tensor const back = round_trip(tensor);
    CHECK(at::equal(back, tensor));
    CHECK(back.is_contiguous());
  }
  CHECK_FALSE(round_trip(at::Tensor()).defined());
  CHECK_FALSE(round_trip(at::rand({2}).set_requires_grad(true)).requires_grad());
}

TEST_CASE("numbers, texts, lists, maps and optionals come back") {
  CHECK(round_trip(std::int64_t{-5}) == -5);
  CHECK(round_trip(0.1) == 0.1);
  CHECK(round_trip(true));
  CHECK(round_trip(std::string("a\0b", 3)) == std::string("a\0b", 3));
  std::vector<std::uint8_t> const bytes{1, 2, 255};
  CHECK(round_trip(bytes) == bytes);
  std::vector<bool> const bits{true, false, true};
  CHECK(round_trip(bits) == bits);
  std::vector<std::string> const words{"", "two"};
  CHECK(round_trip(words) == words);
  CHECK(round_trip(std::vector<int>()).empty());
  std::map<std::string, std::vector<double>> const map{{"a", {1.5}}, {"b", {}}};
  CHECK(round_trip(map) == map);
  std::unordered_map<std::string, int> const unordered{{"x", 1}, {"y", 2}};
  CHECK(round_trip(unordered) == unordered);
  CHECK_FALSE(round_trip(std::optional<int>()));
  CHECK(round_trip(std::optional<int>(4)) == 4);
}

TEST_CASE("pairs, tuples, arrays, batches and types of parts come back") {
  auto const pair = round_trip(std::pair{at::arange(3), std::string("x")});
  CHECK(at::equal(pair.first, at::arange(3)));
  CHECK(pair.second == "x");
  CHECK(round_trip(std::tuple{1, 2.5F, std::string("z")}) == std::tuple{1, 2.5F, std::string("z")});
  CHECK(round_trip(std::array{3, 4}) == std::array{3, 4});
  auto const batch = round_trip(Batch{at::arange(4), {}});
  CHECK(at::equal(batch.data, at::arange(4)));
  CHECK_FALSE(batch.target.defined());
  auto const example = round_trip(torch::data::Example<>(at::arange(2), at::arange(1)));
  CHECK(at::equal(example.target, at::arange(1)));
  auto const tokens = round_trip(Tokens{at::arange(5), 5, {"a", "b"}});
  CHECK(at::equal(tokens.ids, at::arange(5)));
  CHECK(tokens.length == 5);
  CHECK(tokens.words == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a structure has a signature, and a content a size") {
  CHECK(sample_signature<Batch>() == "(tensor, tensor)");
  CHECK(sample_signature<std::pair<at::Tensor, int>>() == "(tensor, i32)");
  CHECK(sample_signature<Tokens>() == "(tensor, i32, list of text)");
  CHECK(sample_signature<std::map<std::string, std::optional<double>>>() == "map of optional f64");
  CHECK(content_bytes(Batch{at::zeros({3}, at::kFloat), {}}) == 12);
  CHECK(content_bytes(std::pair{std::string("abc"), std::vector<std::int16_t>{1, 2}}) == 7);
}

TEST_CASE("any cut, and any byte too many, is refused") {
  Tokens const sample{at::arange(5), 5, {"a", "bcd"}};
  auto bytes = encoded(sample);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(decoded<Tokens>(std::span(bytes).first(size)), frugal::DataError);
  }
  bytes.push_back(std::byte{0});
  CHECK_THROWS_WITH_AS(decoded<Tokens>(bytes), doctest::Contains("sample 7"), frugal::DataError);
}

TEST_CASE("claims beyond the bytes are refused before memory is taken") {
  auto const claim = [](std::uint64_t value) {
    std::vector<std::byte> bytes;
    frugal::detail::append_le(bytes, value);
    return bytes;
  };
  std::uint64_t const most = ~std::uint64_t{0};
  for (std::uint64_t const value : {most, most / 2 + 1, std::uint64_t{1} << 40}) {
    CHECK_THROWS_AS(decoded<std::string>(claim(value)), frugal::DataError);
    CHECK_THROWS_AS(decoded<std::vector<double>>(claim(value)), frugal::DataError);
    CHECK_THROWS_AS(decoded<std::vector<std::string>>(claim(value)), frugal::DataError);
    CHECK_THROWS_AS((decoded<std::map<std::string, int>>(claim(value))), frugal::DataError);
    auto tensor = encoded(at::zeros({1, 1}));
    for (std::size_t const at : {2UL, 10UL}) std::memcpy(tensor.data() + at, &value, 8);
    CHECK_THROWS_AS(decoded<at::Tensor>(tensor), frugal::DataError);
  }
  CHECK_THROWS_AS(decoded<at::Tensor>(std::vector{std::byte{0x80}, std::byte{0}}),
                  frugal::DataError);
}

TEST_CASE("a dtype that cannot be stored is named") {
  CHECK_THROWS_WITH_AS(encoded(at::zeros({2}, at::kComplexDouble)),
                       doctest::Contains("ComplexDouble"), frugal::DtypeError);
}

TEST_CASE("views that conjugate and negate are kept with what they show") {
  at::Tensor const turned = torch::randn({5}, at::kComplexFloat).conj();
  REQUIRE(turned.is_conj());
  at::Tensor const negative = at::imag(turned);
  REQUIRE(negative.is_neg());
  for (at::Tensor const& view : {turned, negative}) {
    auto const bytes = encoded(view);
    CHECK(at::equal(SampleDecoder(bytes, "").all<at::Tensor>(), view.resolve_conj().resolve_neg()));
  }
}

}  // namespace frugal_test::data_cache_sample_codec
