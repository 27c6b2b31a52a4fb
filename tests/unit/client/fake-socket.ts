/** A WebSocket whose server is the test. */
export class FakeSocket extends EventTarget {
  static readonly CONNECTING = 0
  static readonly all: FakeSocket[] = []
  readonly url: URL
  readonly sent: string[] = []
  readyState = 0
  binaryType = 'blob'

  constructor(url: string) {
    super()
    this.url = new URL(url)
    FakeSocket.all.push(this)
  }

  /** The connection is there, and as the first frame where the log is. */
  open(seq = 0): this {
    this.connected()
    this.receive({ type: 'open', seq })
    return this
  }
  connected(): void {
    this.readyState = 1
    this.dispatchEvent(new Event('open'))
  }
  receive(frame: object): void {
    this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(frame) }))
  }
  drop(code = 1006, reason = ''): void {
    this.readyState = 3
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }))
  }
  send(text: string): void {
    this.sent.push(text)
  }
  close(): void {
    this.readyState = 3
  }
}
