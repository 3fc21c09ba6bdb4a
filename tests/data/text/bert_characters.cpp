// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <doctest/doctest.h>

#include <frugal/data/text/bert_characters.hpp>

#include <initializer_list>

namespace frugal_test::data_text_bert_characters {

using frugal::detail::bert_chinese;
using frugal::detail::bert_drops;
using frugal::detail::bert_kind;
using frugal::detail::BertKind;

// tests/interop/wordpiece.py compares every character with Python's tokenizers.
TEST_CASE("white space, punctuation and letters are told apart") {
  for (char32_t const c : {U' ', U'\t', U'\n', U'\v', U'\u0085', U'\u00a0', U'\u2029', U'\u3000'}) {
    CHECK((bert_kind(c) == BertKind::space));
  }
  for (char32_t const c : {U'!', U'$', U'+', U'@', U'`', U'~', U'\u00bf', U'\u2014', U'\u3002'}) {
    CHECK((bert_kind(c) == BertKind::punctuation));
  }
  for (char32_t const c : {U'a', U'0', U'\u00e9', U'\u20ac', U'\u4f60', U'\U0001f600', U'\x7f'}) {
    CHECK((bert_kind(c) == BertKind::letter));
  }
}

TEST_CASE("control, format and private characters are dropped, but no line end") {
  for (char32_t const c :
       {U'\0', U'\x1b', U'\x7f', U'\u0085', U'\u200d', U'\ufeff', U'\ufffd', U'\ue000'}) {
    CHECK(bert_drops(c));
  }
  for (char32_t const c : {U'\t', U'\n', U'\r', U' ', U'\u00a0', U'a', U'\u0301'}) {
    CHECK_FALSE(bert_drops(c));
  }
}

TEST_CASE("Chinese characters are those of BERT's blocks, without kana and Hangul") {
  for (char32_t const c :
       {U'\u3400', U'\u4dbf', U'\u4e00', U'\u9fff', U'\uf900', U'\U00020000', U'\U0002fa1f'}) {
    CHECK(bert_chinese(c));
  }
  for (char32_t const c : {U'\u33ff', U'\u4dc0', U'\ua000', U'\u3042', U'\uac00', U'\U0002b820'}) {
    CHECK_FALSE(bert_chinese(c));
  }
}

}  // namespace frugal_test::data_text_bert_characters
