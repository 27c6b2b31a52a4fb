import { describe, expect, test } from 'vitest'
import { deliveryOf, isAuthenticated, isAutomatic } from '../../../src/events/mail.ts'
import { parseMail, rawMail } from '../../support/mails.ts'

const [first, reply, forged, automatic] = (['first', 'reply', 'forged', 'automatic'] as const).map((name) => parseMail(rawMail(name)))
const found = (results: string | null, from = 'ann@shop.example.com', more = '') =>
  parseMail(`${results === null ? '' : `Authentication-Results: ${results}\n`}${more}From: ${from}\nMessage-ID: <1@x>\n\nhello`)

describe('a mail', () => {
  test.each([
    ['by DMARC', 'mx.cloudflare.net; dmarc=pass header.from=example.com', true],
    ['by a signature of its domain', 'mx.cloudflare.net; dmarc=none; dkim=pass header.d=example.com', true],
    ['by its envelope', 'mx.cloudflare.net; spf=pass smtp.mailfrom=bounce@shop.example.com', true],
    ['although DMARC fails', 'mx.cloudflare.net; dmarc=fail; dkim=pass header.d=shop.example.com', false],
    ['by a signature of somebody else', 'mx.cloudflare.net; dkim=pass header.d=evil.test; dkim=fail header.d=example.com', false],
    ['by a domain that ends alike', 'mx.cloudflare.net; dkim=pass header.d=ample.com', false],
    ['by a domain of one label', 'mx.cloudflare.net; dkim=pass header.d=com', false],
    ['by a comment', 'mx.cloudflare.net; dkim=none (dkim=pass header.d=example.com)', false],
    ['by a comment within a comment', 'mx.cloudflare.net; dkim=none ((x) dkim=pass header.d=example.com)', false],
    ['by a comment that does not end', 'mx.cloudflare.net; dkim=pass header.d=example.com; spf=fail (why', false],
    ['by words in its envelope', 'mx.cloudflare.net; spf=pass smtp.mailfrom="a; dkim=pass header.d=example.com; x="@evil.test', false],
    [
      'by words after a quote in a quote',
      String.raw`mx.cloudflare.net; spf=pass smtp.mailfrom="\"; dkim=pass header.d=example.com; x="@evil.test`,
      false,
    ],
    ['by its quoted envelope', 'mx.cloudflare.net; spf=pass smtp.mailfrom="a (b"@shop.example.com', true],
    ['by what another server found', 'mx.evil.test; dmarc=pass header.from=example.com', false],
    ['by nobody', null, false],
  ])('is authenticated %s: %s is %s', (_, results, expected) => {
    expect(isAuthenticated(found(results))).toBe(expected)
  })

  test('is not authenticated by a header that its sender wrote, nor where it has two senders', () => {
    expect([first, reply, forged].map((mail) => mail && isAuthenticated(mail))).toEqual([true, true, false])
    expect(
      isAuthenticated(found('mx.cloudflare.net; dmarc=pass header.from=example.com', 'ann@example.com', 'From: bob@evil.test\n')),
    ).toBe(false)
  })

  test('is judged in good time, whatever its sender wrote', { tags: ['timed'] }, () => {
    const started = performance.now()
    expect(isAuthenticated(found(`mx.cloudflare.net; ${'a.'.repeat(50_000)}`))).toBe(false)
    expect(performance.now() - started).toBeLessThan(3000)
  })

  test('belongs to the conversation that its oldest reference names, of its sender', () => {
    const threads = [first, reply].map((mail) => mail && deliveryOf(mail, 'shop@acme.test')?.thread)
    expect(threads[0]).toMatch(/^[0-9a-f]{16}$/)
    expect(threads[1]).toBe(threads[0])
    expect(reply && deliveryOf(reply, 'Shop@acme.test')).toMatchObject({
      from: 'ann+shop@example.com',
      to: 'shop@acme.test',
      message_id: '<3@example.com>',
      references: '<1@example.com> <2@acme.test> <3@example.com>',
    })
  })

  test('in HTML alone is its words, and one without a sender is refused', () => {
    const html = '<style>p { color: red }</style><p>Is it <b>open</b>?</p>'
    expect(deliveryOf({ ...found(null), text: '', html }, 'shop@acme.test')?.text).toBe('Is it open ?')
    expect(deliveryOf({ ...found(null), from: undefined }, 'shop@acme.test')).toBeNull()
  })

  test('says nothing that stands in tags, styles and scripts, also where these do not end', () => {
    const said = (html: string) => deliveryOf({ ...found(null), text: '', html }, 'shop@acme.test')?.text
    expect(said('a<STYLE>x</style >b<script>if (1 < 2) y</script>c<br/>d <i title="e">f')).toBe('a b c d f')
    expect(said('a <style>b')).toBe('a')
    expect(said('a <b')).toBe('a')
    expect(said('<styles>a</styles>')).toBe('a')
  })

  test.each([
    ['beginnings of tags', '<'.repeat(2_000_000)],
    ['styles that do not end', '<style>'.repeat(300_000)],
    ['styles in tags that do not end', '<style '.repeat(300_000)],
    ['white space', ' '.repeat(2_000_000)],
  ])('of many %s takes no time', (_, html) => {
    const from = performance.now()
    deliveryOf({ ...found(null), text: '', html }, 'shop@acme.test')
    expect(performance.now() - from).toBeLessThan(2000)
  })

  test('is cut between two characters', () => {
    const delivery = deliveryOf({ ...found(null), subject: `a${'😀'.repeat(200)}`, text: `a${'😀'.repeat(20_000)}` }, 'shop@acme.test')
    expect([delivery?.subject.isWellFormed(), delivery?.text.isWellFormed()]).toEqual([true, true])
    expect(delivery?.text).toHaveLength(20_000)
  })

  test('that a program sent by itself is one', () => {
    expect([first, automatic].map((mail) => mail && isAutomatic(mail, 'ann@example.com'))).toEqual([false, true])
    expect(isAutomatic(found(null), '')).toBe(true)
    expect(isAutomatic(found(null, 'ann@example.com', 'Precedence: bulk\n'), 'ann@example.com')).toBe(true)
  })
})
