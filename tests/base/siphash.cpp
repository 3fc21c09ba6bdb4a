// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/siphash.hpp>

#include <string>
#include <utility>

namespace frugal_test::base_siphash {

using frugal::detail::SipHash;

// Of OpenSSL 3: openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:16 -in FILE SipHash
TEST_CASE("the tags of OpenSSL, of texts of 0 to 64 bytes") {
  SipHash::Key const key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (int i = 0; i < 64; ++i) text += static_cast<char>(i);
  for (auto const& [size, tag] :
       {std::pair<int, char const*>{0, "a3817f04ba25a8e66df67214c7550293"},
        std::pair<int, char const*>{1, "da87c1d86b99af44347659119b22fc45"},
        std::pair<int, char const*>{7, "a1f1ebbed8dbc153c0b84aa61ff08239"},
        std::pair<int, char const*>{8, "3b62a9ba6258f5610f83e264f31497b4"},
        std::pair<int, char const*>{15, "5493e99933b0a8117e08ec0f97cfc3d9"},
        std::pair<int, char const*>{16, "6ee2a4ca67b054bbfd3315bf85230577"},
        std::pair<int, char const*>{63, "5150d1772f50834a503e069a973fbd7c"},
        std::pair<int, char const*>{64, "1eaf077dc0d4cd3f8cad4d383658a74b"}}) {
    CAPTURE(size);
    CHECK(SipHash::hex(SipHash::of(key, text.substr(0, static_cast<std::size_t>(size)))) == tag);
  }
}

}  // namespace frugal_test::base_siphash
