// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/spot/aws.hpp>    // IWYU pragma: keep
#include <frugal/policy/spot/azure.hpp>  // IWYU pragma: keep
#include <frugal/policy/spot/gcp.hpp>    // IWYU pragma: keep
#include <frugal/policy/spot/notice_poller.hpp>

#include <string>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.
namespace frugal {

/// An option of Spot: learns of a preemption from the cloud itself, for machines that get no
/// signal. `Spot<SigtermSave, Grace<120>, Notices<Aws>>`; also Gcp and Azure.
///
/// A side thread polls the metadata service; a step checks a flag. On failures training continues:
/// see policy/spot/notice_poller.hpp.
template <class Provider>
struct Notices {
  Provider provider{};
  NoticePolling polling{};

  class Watch {
   public:
    explicit Watch(Notices const& settings) : poller_(settings.provider, settings.polling) {}

    bool pending() const { return poller_.pending(); }
    /// The notice's source and text.
    std::string text() const {
      auto const notice = poller_.seen();
      return notice ? notice->source + ": " + notice->text : std::string();
    }
    /// Why notices may be missed: the cloud does not answer. Empty if it does.
    std::string warning() const { return poller_.status().warning; }
    /// Called once the run is saved: tells the cloud that it may preempt now, if it supports that
    /// (Azure, if enabled).
    void saved() { poller_.acknowledge(); }

   private:
    NoticePoller<Provider> poller_;
  };
};

}  // namespace frugal
