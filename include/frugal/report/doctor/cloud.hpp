// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/policy/spot/metadata_client.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.

namespace frugal::doctor {

/// The answer of a cloud's metadata service about this machine.
struct Cloud {
  std::string name = {};     ///< "aws", "gcp", "azure", or empty
  std::string machine = {};  ///< its type, such as "p4d.24xlarge"
  std::string text = {};     ///< one sentence
};

struct CloudQuestion {
  std::string base = "http://169.254.169.254";  ///< the address of all three
  std::chrono::milliseconds timeout{500};       ///< per request; four requests at most
};

namespace detail {

struct Asked {
  char const* cloud;
  frugal::MetadataRequest request;
};

/// A request that only that cloud answers with 200: each demands a header of its own. None of them
/// changes anything, unlike the first request for Azure's scheduled events.
inline std::vector<Asked> questions(CloudQuestion const& question, std::string const& token) {
  std::string const& base = question.base;
  std::vector<Asked> all;
  all.push_back({"gcp",
                 {.url = base + "/computeMetadata/v1/instance/machine-type",
                  .headers = {"Metadata-Flavor: Google"},
                  .timeout = question.timeout}});
  all.push_back({"azure",
                 {.url = base + "/metadata/instance/compute/vmSize?api-version=2021-02-01"
                                "&format=text",
                  .headers = {"Metadata: true"},
                  .timeout = question.timeout}});
  if (!token.empty()) {
    all.push_back({"aws",
                   {.url = base + "/latest/meta-data/instance-type",
                    .headers = {"X-aws-ec2-metadata-token: " + token},
                    .timeout = question.timeout}});
  }
  return all;
}

/// A short word, or nothing: an answer the size of a page is a page of something else.
inline std::string word_of(frugal::MetadataAnswer const& answer) {
  std::string const word(frugal::detail::trimmed(answer.body));
  bool const sound = answer.status == 200 && word.size() <= 256 &&
                     word.find(' ') == std::string::npos && word.find('<') == std::string::npos &&
                     frugal::detail::is_printable(word);
  return sound ? word : std::string();
}

}  // namespace detail

/// Asks the metadata service which machine this is: EC2 (IMDSv2), Google Compute Engine or Azure.
/// Nothing throws; without an answer `text` says why.
inline Cloud ask_cloud(CloudQuestion const& question = {}) {
  Cloud cloud;
  try {
    frugal::MetadataClient client;
    std::string const token =
        detail::word_of(client.send({.url = question.base + "/latest/api/token",
                                     .method = "PUT",
                                     .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 60"},
                                     .timeout = question.timeout}));
    for (detail::Asked const& each : detail::questions(question, token)) {
      frugal::MetadataAnswer const answer = client.send(each.request);
      std::string const word = detail::word_of(answer);
      bool const other =
          std::string_view(each.cloud) == "gcp" && answer.header("Metadata-Flavor") != "Google";
      if (word.empty() || other) continue;
      // Google gives "projects/123/machineTypes/a2-highgpu-1g".
      cloud = {.name = each.cloud, .machine = word.substr(word.rfind('/') + 1), .text = {}};
      cloud.text = cloud.name + ", " + cloud.machine + ", answers";
      return cloud;
    }
    cloud.text = "something answers at " + question.base + ", and it is none of aws, gcp, azure";
  } catch (frugal::Error const& error) {
    cloud.text = "no metadata service: " + error.fault().why;
  }
  return cloud;
}

}  // namespace frugal::doctor
