#include "doppler/engine/runtime/parking.h"

#include <thread>

#include <gtest/gtest.h>

namespace doppler {
namespace {

// Threads pass a token round and round: exactly one of them is awake, so nobody may ever be told that all sleep, and a
// lost wake-up hangs the test.
TEST(AParkingPlace, NeitherLosesAWakeUpNorTakesAThreadThatIsBeingWokenForAsleep) {
  constexpr unsigned kThreads = 4;
  constexpr unsigned kRounds = 20'000;
  Parking parking(kThreads);
  std::atomic<unsigned> token{0};
  std::atomic<int> false_alarms{0};
  const auto pass = [&](unsigned me) {
    for (unsigned turn = me; turn < kThreads * kRounds; turn += kThreads) {
      while (token.load() != turn)
        if (!parking.park(me, [&] { return token.load() == turn; })) ++false_alarms;
      token.store(turn + 1);
      parking.wake((me + 1) % kThreads);
      parking.wake((me + 2) % kThreads);  // for nothing: it looks and lies down again
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(pass, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(false_alarms, 0);
}

TEST(AParkingPlace, TellsTheLastThreadThatNobodyIsLeft) {
  Parking parking(2);
  EXPECT_FALSE(parking.one_more_asleep());  // the first has left
  EXPECT_FALSE(parking.park(1, [] { return false; }));
}

TEST(AParkingPlace, LetsANapEndByItselfAndDoesNotCountIt) {
  Parking parking(2);
  EXPECT_FALSE(parking.one_more_asleep());
  parking.nap(1, 1000, [] { return false; });  // a microsecond
  EXPECT_FALSE(parking.park(1, [] { return false; }));
}

}  // namespace
}  // namespace doppler
