// Mails to a support desk, written by a script: what the example reads where no file is given.
// The same number gives the same mails.

/** A text with the decision that a person would take on it; null: nothing is to be done. */
export type Labelled = { source: string; text: string; label: string | null }

/** Deterministic numbers in [0, 1) (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const KINDS: Record<string, { label: string | null; opening: string[]; matter: string[]; share: number }> = {
  invoice: {
    label: 'billing',
    share: 3,
    opening: ['There is a mistake in', 'I do not understand', 'Please correct', 'We were charged twice on', 'Kindly resend'],
    matter: ['invoice #N', 'the invoice of last month', 'invoice #N for our seats', 'our latest invoice, number N'],
  },
  access: {
    label: 'access',
    share: 3,
    opening: ['A colleague cannot get past', 'I am locked out at', 'Nobody here gets through', 'Something is wrong with', 'Help me with'],
    matter: ['the login page', 'the login since #N this morning', 'my login, code N', 'the login of workspace N'],
  },
  parcel: {
    label: 'shipping',
    share: 2,
    opening: ['Where is', 'Still waiting for', 'The courier lost', 'Please redirect', 'It rained on'],
    matter: ['my parcel N', 'the parcel you sent on day N', 'a parcel with badges', 'parcel number N'],
  },
  news: {
    label: null,
    share: 4,
    opening: ['This week:', 'Last chance:', 'You are invited:', 'New for you:', 'A quick hello:'],
    matter: ['our newsletter no. N', 'newsletter for members', 'the newsletter with N offers', 'a newsletter about summer'],
  },
}
const MANNERS = ['Thanks', 'Best', 'Regards', 'Cheers', 'Yours', 'Greetings', 'Have a good day']
const PLACES = ['from Lisbon', 'from the Oslo office', 'on behalf of the team', 'as discussed', 'again', 'and it is urgent', '']

export function mails(count: number, seed = 20_261_122): Labelled[] {
  const random = randomOf(seed)
  const pick = <One>(items: readonly One[]): One => items[Math.floor(random() * items.length)] as One
  const kinds = Object.values(KINDS).flatMap((kind) => Array.from({ length: kind.share }, () => kind))
  return Array.from({ length: count }, () => {
    const { label, opening, matter } = pick(kinds)
    const parts = [pick(opening), pick(matter).replace('N', String(Math.floor(random() * 9000) + 1000)), pick(PLACES)]
    const text = `${parts.filter((part) => part !== '').join(' ')}. ${pick(MANNERS)}`
    return { source: `mail:customer-${Math.floor(random() * 120)}`, text, label }
  })
}
