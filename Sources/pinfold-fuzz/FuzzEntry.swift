#if FUZZ
  import Glibc

  /// The target of this process, from the environment: libFuzzer's command line is libFuzzer's own.
  private let chosen: FuzzTarget? =
    unsafe getenv("PINFOLD_FUZZ_TARGET").flatMap { unsafe FuzzTarget(rawValue: String(cString: $0)) }

  /// What libFuzzer calls with each input (https://llvm.org/docs/LibFuzzer.html).
  @c(LLVMFuzzerTestOneInput)
  func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    guard let chosen else {
      print("PINFOLD_FUZZ_TARGET has to be one of: \(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))")
      exit(64)
    }
    do throws(BrokenPromise) {
      try chosen.run(unsafe Array(UnsafeBufferPointer(start: data, count: count)))
    } catch {
      // libFuzzer keeps the input of a process that ends by a trap, which is what is wanted of a finding.
      fatalError(error.description)
    }
    return 0
  }
#endif
