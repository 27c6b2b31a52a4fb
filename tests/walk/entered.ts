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

// An id that reads like a card number by chance enters more functions: these are of letters.
const draw = crypto.getRandomValues.bind(crypto)
const ofLetters = (byte: number): number => (10 + ((byte >> 4) % 6)) * 16 + 10 + (byte % 6)
const letters = (bytes: number): string => Array.from(draw(new Uint8Array(bytes)), (byte) => ofLetters(byte).toString(16)).join('')
Object.assign(crypto, {
  getRandomValues: <Drawn extends Parameters<typeof draw>[0]>(drawn: Drawn): Drawn => {
    draw(drawn)
    if (drawn instanceof Uint8Array) drawn.set(drawn.map(ofLetters))
    return drawn
  },
  randomUUID: () => [letters(4), letters(2), `4${letters(2).slice(1)}`, `a${letters(2).slice(1)}`, letters(6)].join('-'),
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
