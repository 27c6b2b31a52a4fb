import type { SettingsPatch } from '../../src/contract/settings/settings.ts'

type Declared = { destinations?: string[]; untrusted?: boolean | string[] }

/** The declarations of an operator who knows the tools, and no task. */
export const declared: Readonly<Record<string, { tools: Readonly<Record<string, Declared>>; settings: SettingsPatch }>> = {
  banking: {
    tools: {
      read_file: { destinations: ['file_path'], untrusted: true },
      get_most_recent_transactions: { untrusted: ['subject'] },
      get_scheduled_transactions: { untrusted: ['subject'] },
      send_money: { destinations: ['recipient'] },
      schedule_transaction: { destinations: ['recipient'] },
      update_scheduled_transaction: { destinations: ['recipient'] },
      update_password: { destinations: ['password'] },
      update_user_info: { destinations: [] },
    },
    settings: {},
  },
  slack: {
    tools: {
      get_webpage: { destinations: ['url'], untrusted: true },
      post_webpage: { destinations: ['url'] },
      read_channel_messages: { destinations: [], untrusted: ['body'] },
      read_inbox: { destinations: [], untrusted: ['body'] },
      send_direct_message: { destinations: ['recipient'] },
      send_channel_message: { destinations: ['channel'] },
      add_user_to_channel: { destinations: ['user', 'channel'] },
      invite_user_to_slack: { destinations: ['user', 'user_email'] },
      remove_user_from_slack: { destinations: ['user'] },
    },
    // Colleagues write the messages: they may name pages to read.
    settings: { trusted_text: [{ in: 'http.read_*', what: ['url'], tools: ['http.get_webpage'] }] },
  },
}
