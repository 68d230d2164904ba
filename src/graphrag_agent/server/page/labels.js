// The page's words in its four languages, and which of them to show.

export const LABELS = {
  en: {
    title: "Ask your documents", language: "Language", skip: "Skip to the question",
    threads: "Conversations", newThread: "New conversation", noThreads: "No conversations yet.", more: "Show more",
    welcome: "Ask a question. The answer names the passages that it rests on.",
    question: "Question", placeholder: "Ask a question …", send: "Send", stop: "Stop",
    searching: "Searching: {query}", working: "Working: {name}", found: "passages found: {count}", nothing: "nothing found",
    failed: "did not work", thinking: "Thinking …", writing: "Writing the answer …", waiting: "Working …", done: "The answer is there.",
    sources: "Sources", searches: "Searches", page: "page {page}", cited: "Source {number}: {title}",
    stale: "This passage has changed or is no longer available.",
    weak: "check", unsupported: "not confirmed by the source",
    you: "You", answer: "Answer", edit: "Edit", regenerate: "Regenerate", save: "Save", cancel: "Cancel",
    remove: "Delete “{title}”", confirmRemove: "Delete the conversation “{title}”? It can't be brought back.", untitled: "Untitled",
    stopped: "Stopped.", incomplete: "This answer may be incomplete.", clientTools: "The answer waits for a tool that this page doesn't have.",
    token: "Access token", tokenHelp: "This server needs an access token. It is kept until this tab is closed.",
    errors: {
      network: "The server can't be reached. Try again in a moment.",
      unauthorized: "The access token is missing or unknown.",
      thread_busy: "An answer is still being written in this conversation.",
      too_many_turns: "Too many answers are being written. Wait a little and try again.",
      message_too_long: "The question is too long. Shorten it.",
      question_too_long: "The question is too long. Shorten it.",
      unknown_thread: "This conversation is not there any more.",
      model_unavailable: "The model can't be reached. Try again later.",
      other: "That did not work. {message}",
    },
  },
  ru: {
    title: "Вопросы к документам", language: "Язык", skip: "Перейти к вопросу",
    threads: "Беседы", newThread: "Новая беседа", noThreads: "Бесед пока нет.", more: "Показать ещё",
    welcome: "Задайте вопрос. В ответе указаны фрагменты, на которых он основан.",
    question: "Вопрос", placeholder: "Задайте вопрос …", send: "Отправить", stop: "Остановить",
    searching: "Поиск: {query}", working: "Выполняется: {name}", found: "найдено фрагментов: {count}", nothing: "ничего не найдено",
    failed: "не получилось", thinking: "Размышление …", writing: "Пишется ответ …", waiting: "Идёт работа …", done: "Ответ готов.",
    sources: "Источники", searches: "Поисковые запросы", page: "стр. {page}", cited: "Источник {number}: {title}",
    stale: "Этот фрагмент изменён или больше недоступен.",
    weak: "проверьте", unsupported: "источник этого не подтверждает",
    you: "Вы", answer: "Ответ", edit: "Изменить", regenerate: "Ответить заново", save: "Сохранить", cancel: "Отмена",
    remove: "Удалить «{title}»", confirmRemove: "Удалить беседу «{title}»? Её нельзя будет вернуть.", untitled: "Без названия",
    stopped: "Остановлено.", incomplete: "Ответ может быть неполным.", clientTools: "Ответ ждёт инструмента, которого на этой странице нет.",
    token: "Токен доступа", tokenHelp: "Серверу нужен токен доступа. Он хранится, пока открыта эта вкладка.",
    errors: {
      network: "Сервер недоступен. Попробуйте ещё раз чуть позже.",
      unauthorized: "Токен доступа не указан или неизвестен.",
      thread_busy: "В этой беседе ещё пишется ответ.",
      too_many_turns: "Пишется слишком много ответов. Подождите немного и повторите.",
      message_too_long: "Вопрос слишком длинный. Сократите его.",
      question_too_long: "Вопрос слишком длинный. Сократите его.",
      unknown_thread: "Этой беседы больше нет.",
      model_unavailable: "Модель недоступна. Попробуйте позже.",
      other: "Не получилось. {message}",
    },
  },
  kk: {
    title: "Құжаттарға сұрақ қою", language: "Тіл", skip: "Сұраққа өту",
    threads: "Әңгімелер", newThread: "Жаңа әңгіме", noThreads: "Әзірге әңгіме жоқ.", more: "Тағы көрсету",
    welcome: "Сұрақ қойыңыз. Жауапта ол сүйенген үзінділер көрсетіледі.",
    question: "Сұрақ", placeholder: "Сұрақ қойыңыз …", send: "Жіберу", stop: "Тоқтату",
    searching: "Іздеу: {query}", working: "Орындалуда: {name}", found: "табылған үзінділер: {count}", nothing: "ештеңе табылмады",
    failed: "орындалмады", thinking: "Ойлануда …", writing: "Жауап жазылуда …", waiting: "Жұмыс жүріп жатыр …", done: "Жауап дайын.",
    sources: "Дереккөздер", searches: "Іздеулер", page: "{page}-бет", cited: "{number}-дереккөз: {title}",
    stale: "Бұл үзінді өзгерген немесе енді қолжетімсіз.",
    weak: "тексеріңіз", unsupported: "дереккөз мұны растамайды",
    you: "Сіз", answer: "Жауап", edit: "Өзгерту", regenerate: "Қайта жауап беру", save: "Сақтау", cancel: "Бас тарту",
    remove: "«{title}» әңгімесін жою", confirmRemove: "«{title}» әңгімесін жою керек пе? Оны қайтару мүмкін емес.", untitled: "Атаусыз",
    stopped: "Тоқтатылды.", incomplete: "Жауап толық болмауы мүмкін.", clientTools: "Жауап бұл бетте жоқ құралды күтіп тұр.",
    token: "Қол жеткізу токені", tokenHelp: "Серверге қол жеткізу токені қажет. Ол осы қойынды жабылғанша сақталады.",
    errors: {
      network: "Серверге қосылу мүмкін емес. Сәл кейінірек қайталап көріңіз.",
      unauthorized: "Қол жеткізу токені көрсетілмеген немесе белгісіз.",
      thread_busy: "Бұл әңгімеде жауап әлі жазылып жатыр.",
      too_many_turns: "Тым көп жауап жазылып жатыр. Сәл күтіп, қайталаңыз.",
      message_too_long: "Сұрақ тым ұзын. Қысқартыңыз.",
      question_too_long: "Сұрақ тым ұзын. Қысқартыңыз.",
      unknown_thread: "Бұл әңгіме енді жоқ.",
      model_unavailable: "Модель қолжетімсіз. Кейінірек қайталап көріңіз.",
      other: "Орындалмады. {message}",
    },
  },
  zh: {
    title: "文档问答", language: "语言", skip: "跳到提问",
    threads: "对话", newThread: "新对话", noThreads: "还没有对话。", more: "显示更多",
    welcome: "请提问。答案会注明所依据的段落。",
    question: "问题", placeholder: "请输入问题……", send: "发送", stop: "停止",
    searching: "正在搜索：{query}", working: "正在执行：{name}", found: "找到 {count} 个段落", nothing: "没有找到",
    failed: "未成功", thinking: "正在思考……", writing: "正在撰写答案……", waiting: "正在处理……", done: "答案已生成。",
    sources: "来源", searches: "搜索", page: "第 {page} 页", cited: "来源 {number}：{title}",
    stale: "该段落已更改或不再可用。",
    weak: "请核对", unsupported: "来源未证实",
    you: "您", answer: "答案", edit: "编辑", regenerate: "重新生成", save: "保存", cancel: "取消",
    remove: "删除“{title}”", confirmRemove: "要删除对话“{title}”吗？删除后无法恢复。", untitled: "无标题",
    stopped: "已停止。", incomplete: "该答案可能不完整。", clientTools: "答案在等待本页面没有的工具。",
    token: "访问令牌", tokenHelp: "此服务器需要访问令牌。令牌只保存到关闭此标签页为止。",
    errors: {
      network: "无法连接服务器，请稍后重试。",
      unauthorized: "访问令牌缺失或无效。",
      thread_busy: "此对话中仍在撰写答案。",
      too_many_turns: "正在撰写的答案过多，请稍候重试。",
      message_too_long: "问题太长，请缩短。",
      question_too_long: "问题太长，请缩短。",
      unknown_thread: "该对话已不存在。",
      model_unavailable: "无法连接模型，请稍后重试。",
      other: "操作未成功。{message}",
    },
  },
};

let locale = "en";

export function currentLocale() {
  return locale;
}

export function chooseLocale(wished) {
  const known = wished.map((name) => String(name).toLowerCase().split("-")[0]).find((name) => name in LABELS);
  locale = known || "en";
  return locale;
}

export function label(name, values = {}) {
  const text = name.split(".").reduce((found, part) => found && found[part], LABELS[locale]);
  return String(text || "").replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

export function errorText(problem) {
  const known = LABELS[locale].errors[problem.code];
  return known || label("errors.other", { message: problem.message || "" });
}

// Writes the words into everything that asks for them by data-label.
export function applyLabels(root = document) {
  document.documentElement.lang = locale;
  document.title = label("title");
  for (const node of root.querySelectorAll("[data-label]")) node.textContent = label(node.dataset.label);
  for (const node of root.querySelectorAll("[data-label-placeholder]")) node.placeholder = label(node.dataset.labelPlaceholder);
  for (const node of root.querySelectorAll("[data-label-title]")) {
    node.title = label(node.dataset.labelTitle);
    node.setAttribute("aria-label", label(node.dataset.labelTitle));
  }
}
