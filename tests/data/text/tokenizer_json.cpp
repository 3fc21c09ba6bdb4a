// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: text
#include <doctest/doctest.h>

#include <frugal/data/text/tokenizer_json.hpp>

#include "support/files.hpp"

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace frugal_test::data_text_tokenizer_json {

using frugal::DataError;
using frugal::read_tokenizer;
using frugal::Wordpiece;
using Ids = std::vector<std::int32_t>;

/// A tokenizer.json, part by part; what Python writes is in tests/interop/weights.py.
struct Parts {
  std::string truncation = "null";
  std::string padding = "null";
  std::string added = R"({"id":2,"content":"[CLS]","special":true,"normalized":false},
                         {"id":3,"content":"[SEP]","special":true,"normalized":false})";
  std::string normalizer = R"({"type":"BertNormalizer","clean_text":true,
      "handle_chinese_chars":true,"strip_accents":null,"lowercase":true})";
  std::string pre_tokenizer = R"({"type":"BertPreTokenizer"})";
  std::string post = R"({"type":"BertProcessing","sep":["[SEP]",3],"cls":["[CLS]",2]})";
  std::string model = "WordPiece";
  std::string vocab = R"("[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"un":5,"##aff":6,
                         "##able":7,"he":8,"##llo":9)";

  std::string text() const {
    return R"({"version":"1.0","truncation":)" + truncation + R"(,"padding":)" + padding +
           R"(,"added_tokens":[)" + added + R"(],"normalizer":)" + normalizer +
           R"(,"pre_tokenizer":)" + pre_tokenizer + R"(,"post_processor":)" + post +
           R"(,"model":{"type":")" + model + R"(","unk_token":"[UNK]",
               "continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{)" +
           vocab + "}}}";
  }
  Wordpiece read() const {
    support::TemporaryFolder const folder;
    std::ofstream(folder / "tokenizer.json") << text();
    return read_tokenizer(folder.path());
  }
  void refused(char const* why) const {
    CAPTURE(std::string(why));
    CHECK_THROWS_WITH_AS(static_cast<void>(read()), doctest::Contains(why), DataError);
  }
};

std::string with(std::string text, std::string const& what, std::string const& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST_CASE("a tokenizer has the vocabulary, special tokens and text settings of its file") {
  Wordpiece const bert = Parts{}.read();
  CHECK(bert.encode("UNaffable h\u00e9llo").ids == Ids{2, 5, 6, 7, 8, 9, 3});
  CHECK(bert.encode("un", "he").ids == Ids{2, 5, 3, 8, 3});
  CHECK(bert.padding() == 0);
  CHECK(bert.mask() == 4);
  CHECK(bert.vocabulary().size() == 10);
  Parts cased;
  cased.normalizer = with(cased.normalizer, "\"lowercase\":true", "\"lowercase\":false");
  CHECK(cased.read().ids("UN un") == Ids{1, 5});
  cased.normalizer = with(cased.normalizer, "null", "true");
  CHECK(cased.read().ids("h\u00e9") == Ids{8});
}

TEST_CASE("added tokens are found in a text, special ones included") {
  Parts parts;
  parts.added += R"(,{"id":10,"content":"Covid","special":false,"normalized":true},
                    {"id":11,"content":"<A>","special":true,"normalized":false})";
  Wordpiece const bert = parts.read();
  CHECK(bert.vocabulary().size() == 12);
  CHECK(bert.ids("un[SEP]he") == Ids{5, 3, 8});
  CHECK(bert.ids("un[sep]he") == Ids{5, 1, 1, 1, 8});
  CHECK(bert.ids("he<A>llo") == Ids{8, 11, 1});
  CHECK(bert.ids("he <a>") == Ids{8, 1, 1, 1});
  // Found in the text as it is normalized, within a word too.
  CHECK(bert.ids("c\u00f3VIDhe un") == Ids{10, 8, 5});
  CHECK((bert.encode("un c\u00f3VIDhe<A>").spans ==
         std::vector<frugal::TextSpan>{{0, 0}, {0, 2}, {3, 9}, {9, 11}, {11, 14}, {0, 0}}));
  // Added tokens are no pieces of words.
  CHECK(bert.decode(bert.ids("un <A> covid")) == "un Covid");
}

TEST_CASE("the file's truncation is the highest limit") {
  Parts parts;
  parts.truncation = R"({"direction":"Right","max_length":4,"strategy":"LongestFirst","stride":0})";
  Wordpiece const bert = parts.read();
  CHECK(bert.encode("un un un un").ids == Ids{2, 5, 5, 3});
  CHECK(bert.encode("un un un un", 3).ids == Ids{2, 5, 3});
  CHECK(bert.encode("un un un un", 30).ids.size() == 4);
  CHECK(bert.encode("un un", "he he").ids == Ids{2, 3, 8, 3});
}

TEST_CASE("the identity changes with the added tokens and the limit") {
  Parts parts;
  std::string const plain = parts.read().identity();
  parts.truncation = R"({"max_length":4,"strategy":"LongestFirst","stride":0})";
  std::string const cut = parts.read().identity();
  CHECK(cut != plain);
  parts.added += R"(,{"id":5,"content":"un","special":false,"normalized":true})";
  std::string const added = parts.read().identity();
  CHECK(added != cut);
  parts.added = with(parts.added, "\"un\",\"special\":false,\"normalized\":true",
                     "\"un\",\"special\":false,\"normalized\":false");
  CHECK(parts.read().identity() != added);
}

TEST_CASE("a template may be written in two ways, and only that of BERT is known") {
  Parts parts;
  parts.post = R"({"type":"TemplateProcessing",
    "single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
              {"SpecialToken":{"id":"[SEP]","type_id":0}}],
    "pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},
            {"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},
            {"SpecialToken":{"id":"[SEP]","type_id":1}}],
    "special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},
                      "[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}})";
  CHECK(parts.read().encode("un", "he").ids == Ids{2, 5, 3, 8, 3});
  std::string const usual = parts.post;
  parts.post = with(usual, "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}",
                    "{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}");
  parts.refused("its template is not that of BERT");
  parts.post = with(usual, "\"tokens\":[\"[CLS]\"]", "\"tokens\":[\"[CLS]\",\"[MASK]\"]");
  parts.refused("a special token stands for several");
  parts.post = R"({"type":"ByteLevel"})";
  parts.refused(", post_processor): it is ByteLevel, and only TemplateProcessing is known");
  parts.post = "null";
  parts.refused(", post_processor): it is missing");
}

TEST_CASE("what Wordpiece does not do is refused by its name") {
  Parts const usual;
  Parts parts = usual;
  parts.model = "BPE";
  parts.refused(", model): it is BPE, and only WordPiece is known");
  parts = usual;
  parts.normalizer = R"({"type":"NFKC"})";
  parts.refused(", normalizer): it is NFKC, and only BertNormalizer is known");
  parts.normalizer = "null";
  parts.refused(", normalizer): it is missing");
  parts = usual;
  parts.pre_tokenizer = R"({"type":"Whitespace"})";
  parts.refused(", pre_tokenizer): it is Whitespace");
  parts = usual;
  parts.truncation = R"({"max_length":4,"strategy":"OnlyFirst","stride":0})";
  parts.refused(", truncation): its strategy is not LongestFirst");
  parts.truncation = R"({"direction":"Left","max_length":4,"strategy":"LongestFirst"})";
  parts.refused(", truncation): texts are not cut at their end");
  parts = usual;
  parts.added = with(usual.added, "\"special\":true", "\"special\":true,\"single_word\":true");
  parts.refused("'[CLS]' is only a token as a word of its own");
  parts = usual;
  parts.vocab = with(usual.vocab, "\"[MASK]\":4", "\"x\":4");
  parts.refused("no token is for mask");
}

TEST_CASE("a damaged tokenizer is refused") {
  Parts const usual;
  Parts parts = usual;
  parts.vocab = with(usual.vocab, "\"un\":5", "\"un\":6");
  parts.refused("the id 6 is there twice");
  parts.vocab = with(usual.vocab, "\"un\":5", "\"un\":50");
  parts.refused("'un' has the id 50");
  parts = usual;
  parts.added = with(usual.added, "\"id\":2", "\"id\":5");
  parts.refused("'[CLS]' has the id of 'un'");
  parts.added += R"(,{"id":12,"content":"x"})";
  parts.added = with(parts.added, "\"id\":5", "\"id\":2");
  parts.refused("no token has the id 10");
  support::TemporaryFolder const folder;
  std::ofstream(folder / "tokenizer.json") << usual.text().substr(0, 300);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_tokenizer(folder / "tokenizer.json")),
                       doctest::Contains("the file is not a tokenizer"), DataError);
  CHECK_THROWS_AS(static_cast<void>(read_tokenizer(folder / "nothing")), frugal::StoreError);
}

}  // namespace frugal_test::data_text_tokenizer_json
