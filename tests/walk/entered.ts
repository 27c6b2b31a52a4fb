/** A function that was entered. `comment`: the first sentence of what its comment says. */
export type Entered = { file: string; name: string; line: number; comment: string }

let recorded: Entered[] | null = null
let last = 0

Object.assign(globalThis, {
  enteredInWalk: (file: string, name: string, line: number, comment: string): void => {
    last = performance.now()
    recorded?.push({ file, name, line, comment })
  },
})

export function beginRecording(): void {
  recorded = []
}

export function endRecording(): Entered[] {
  const entered = recorded ?? []
  recorded = null
  return entered
}

/** Waits until no function of `src/` has been entered for some time. */
export async function quiet(quiet_ms = 150): Promise<void> {
  last = performance.now()
  while (performance.now() - last < quiet_ms) await scheduler.wait(20)
}
