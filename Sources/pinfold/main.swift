import Glibc
import PinfoldCommand

// Nothing but this call: a closure written here would belong to the main actor and trap on another thread.
exit(CommandLineTool.run(Array(CommandLine.arguments.dropFirst())).rawValue)
