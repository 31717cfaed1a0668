"""Original text used to train the toy tokenizers and to prompt the toy models."""

CORPUS = [
    "The harbour was quiet that morning. A grey cat sat on the stone wall and watched the boats come in, one after "
    "another, while the baker across the street opened the shutters and put the first loaves on the counter. Nobody "
    "was in a hurry. The tide would turn at nine, and there was still time for another cup of coffee before the work began.",
    "When the engine starts, it reads the weights, checks the shapes and builds a list of the layers. Then it waits "
    "for the next request. Every request has a prompt, and every prompt is split into tokens. The tokens are looked up "
    "in the table, the vectors pass through the layers, and at the end there is one number for each word in the vocabulary.",
    "I don't think it's possible to do that, she said. They're right, we've tried it before and we'll try it again. "
    "He'd rather walk than wait for the train. It wasn't what I'm used to, but you'd be surprised how well it works.",
    "Numbers: 1, 2, 3, 10, 100, 1000, 2024, 3.14159, 42, 1234567890, 99.5%, $12.50, 7/8, 2^10 = 1024. "
    "On 15 March 1987 there were 365 people in the hall; by 1992 there were 4800.",
    "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n\nfor i in range(10):\n"
    "    print(i, fib(i))\n",
    "int main(int argc, char **argv) {\n\tfor (int i = 0; i < argc; ++i) {\n\t\tprintf(\"%s\\n\", argv[i]);\n\t}\n"
    "\treturn 0;\n}\n",
    "{\"name\": \"lamp\", \"price\": 19.99, \"tags\": [\"home\", \"light\"], \"stock\": null, \"ok\": true}\n",
    "# Heading\n\n- first item\n- second item\n\n1. one\n2. two\n\n> a quote\n\n`code` and **bold** and _italic_.\n",
    "Le matin, le chat dort pr\u00e8s de la fen\u00eatre. O\u00f9 est la gare ? Elle est derri\u00e8re l'\u00e9glise, \u00e0 c\u00f4t\u00e9 du caf\u00e9. "
    "\u00c7a ne fait rien, r\u00e9pondit-il, nous avons d\u00e9j\u00e0 mang\u00e9.",
    "Der Flu\u00df flie\u00dft langsam durch die Stadt. K\u00f6nnen Sie mir bitte helfen? Nat\u00fcrlich, ich zeige Ihnen den Weg \u00fcber "
    "die Br\u00fccke. Die Stra\u00dfe ist heute gesperrt.",
    "El ni\u00f1o peque\u00f1o corr\u00eda por la calle cuando empez\u00f3 a llover. \u00bfCu\u00e1ntos a\u00f1os tienes? Ma\u00f1ana iremos a la monta\u00f1a.",
    "\u0421\u0442\u0430\u0440\u044b\u0439 \u0434\u043e\u043c \u0441\u0442\u043e\u044f\u043b \u043d\u0430 \u0431\u0435\u0440\u0435\u0433\u0443 \u0440\u0435\u043a\u0438. \u0412\u0435\u0447\u0435\u0440\u043e\u043c \u0432 \u043e\u043a\u043d\u0430\u0445 \u0437\u0430\u0433\u043e\u0440\u0430\u043b\u0441\u044f \u0441\u0432\u0435\u0442, \u0438 \u0432\u0441\u044f \u0441\u0435\u043c\u044c\u044f \u0441\u0430\u0434\u0438\u043b\u0430\u0441\u044c \u0437\u0430 \u0441\u0442\u043e\u043b.",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u6563\u6b65\u3002\u56fe\u4e66\u9986\u91cc\u6709\u5f88\u591a\u4e66\uff0c\u6211\u559c\u6b22\u8bfb\u4e66\u3002\u4f60\u597d\uff0c\u4e16\u754c\uff01",
    "\u4eca\u65e5\u306f\u3068\u3066\u3082\u826f\u3044\u5929\u6c17\u3067\u3059\u3002\u99c5\u307e\u3067\u6b69\u3044\u3066\u884c\u304d\u307e\u3057\u3087\u3046\u3002\u3042\u308a\u304c\u3068\u3046\u3054\u3056\u3044\u307e\u3059\u3002",
    "\uc624\ub298\uc740 \ub0a0\uc528\uac00 \uc88b\uc2b5\ub2c8\ub2e4. \uc6b0\ub9ac\ub294 \uacf5\uc6d0\uc5d0 \uac14\uc2b5\ub2c8\ub2e4.",
    "\u0627\u0644\u0642\u0637\u0627\u0631 \u064a\u0635\u0644 \u0641\u064a \u0627\u0644\u0633\u0627\u0639\u0629 \u0627\u0644\u062b\u0627\u0645\u0646\u0629 \u0635\u0628\u0627\u062d\u0627.",
    "\u0928\u092e\u0938\u094d\u0924\u0947, \u0906\u092a \u0915\u0948\u0938\u0947 \u0939\u0948\u0902? \u092e\u0948\u0902 \u0920\u0940\u0915 \u0939\u0942\u0901\u0964",
    "Party time \U0001f389\U0001f389! I love pizza \U0001f355 and ice cream \U0001f366. See you soon \U0001f44b\U0001f3fd \U0001f469\u200d\U0001f4bb \u2764\ufe0f \U0001f1eb\U0001f1f7",
    "The old library had three floors. The first floor was for children, the second for the sciences and the third, "
    "which was always locked, for the letters and maps that the town had collected over the centuries. The librarian "
    "knew every shelf, and could find any book in the dark.",
    "HELLO WORLD! This Is Title Case. camelCaseName, snake_case_name, CONSTANT_VALUE, kebab-case-name, HTTPServer2.",
    "Rain fell on the hills all night, and in the morning the river had risen over the lower road. The farmer walked "
    "to the bridge with his dog, looked at the brown water and shook his head. There would be no market today, and "
    "perhaps none tomorrow. He turned back, lit the stove, and began to mend the harness that hung by the door.",
    "    four spaces\n\ttab\n  two\n\n\n three newlines above   and   gaps.\r\nwindows line\r\n",
]

SHORT = "Once upon a time, in a small town"

LONG = (
    "The train left the station at dawn and followed the river towards the mountains. In the second carriage sat a "
    "woman with a wooden box on her knees. She had carried it from the coast, through four towns and two storms, and "
    "she didn't intend to open it before she reached the last stop. The boy opposite looked at the box, then at her, "
    "then at the box again. \"What's inside?\" he asked. She smiled. \"Letters,\" she said, \"and the map of a place "
    "that no longer exists.\" Outside, the fields were white with frost, and the smoke of the engine lay over them.\n"
)

# the strings each tokenizer is asked to encode and decode
TOKENIZE = [
    "",
    "a",
    " ",
    "  ",
    "Hello, world!",
    " leading space",
    "trailing space ",
    "two  spaces   three",
    "line one\nline two\n\nline four\n",
    "\n\n\n",
    "\ttab\t\ttwo tabs",
    "windows\r\nline\r\n",
    "I've been told he's there, 'RE you sure? We'Ve a'lL DON'T",
    "3 33 333 3333 33333 3.14159 1,000,000 2024-05-17",
    "def f(x):\n    return x ** 2  # square\n",
    "for (int i = 0; i < 10; ++i) { a[i] += b[i]; }",
    "camelCase snake_case SCREAMING_CASE HTTPServer iPhone",
    "na\u00efve caf\u00e9 d\u00e9j\u00e0-vu Stra\u00dfe \u00c5ngstr\u00f6m",
    "e\u0301 combining vs \u00e9 composed",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430?",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u4eca\u5929\u662f2024\u5e74\u3002",
    "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\u30ab\u30bf\u30ab\u30ca",
    "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\U0001f389 party \U0001f469\u200d\U0001f4bb \U0001f44b\U0001f3fd \u2764\ufe0f \U0001f1eb\U0001f1f7 \U0001f355",
    "------======= ''''''```````\"\"\"\"......!!!!!!??????",
    "https://example.com/path?query=1&b=two#frag user@example.org",
    "\u00a0non-breaking\u2003em\u200bzero-width",
    "C:\\Users\\name\\file.txt",
    "\u2581 lower one eighth block",
]

CHATS = [
    [{"role": "user", "content": "Hello, who are you?"}],
    [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "What is 2 + 2?"},
        {"role": "assistant", "content": "It is 4."},
        {"role": "user", "content": "Thanks!  And 3 + 3?\n"},
    ],
]

CHATS_NO_SYSTEM = [
    CHATS[0],
    [
        {"role": "user", "content": "What is 2 + 2?"},
        {"role": "assistant", "content": "It is 4."},
        {"role": "user", "content": "Thanks!  And 3 + 3?\n"},
    ],
]

# about 400 tokens of plain English, for perplexity on the real model
ESSAY = (
    "A bicycle is one of the most efficient machines ever made. A person on foot spends roughly three times as much "
    "energy to cover the same distance as a person on a bicycle, and the cyclist arrives three or four times sooner. "
    "The reason is simple: on a wheel the body is carried, so none of the effort goes into lifting its own weight at "
    "every step. What remains is the work of pushing the air aside, of bending the tyres and of climbing hills, and "
    "on a flat road at a gentle speed that is very little.\n\n"
    "The first machines with two wheels in a line had no pedals at all. The rider sat on a wooden beam and pushed "
    "against the ground with his feet, coasting when the road went down. Pedals came about fifty years later, and "
    "were fixed to the front wheel, so that one turn of the feet gave one turn of the wheel. To go faster the wheel "
    "had to grow, and it grew until the rider sat higher than a horse and fell nearly as far. The chain solved the "
    "problem. It let a small wheel turn several times for each turn of the pedals, it brought the rider back to a "
    "safe height, and it put the weight between the wheels, where the brakes could be used without throwing anyone "
    "over the front.\n\n"
    "Very little has changed since then. The frame is still two triangles, because a triangle cannot be bent out of "
    "shape without stretching one of its sides. The wheels are still held together by thin wires under tension, each "
    "of which could not support a child if it were pushed, but which together carry a heavy rider over stones for "
    "years. The bearings are still small steel balls. The tyres are still filled with air, an idea that a vet is said "
    "to have had when his son complained of headaches. Better materials have made everything lighter, and more gears "
    "have made hills easier, but a mechanic from the year 1900 would need only an afternoon to understand a bicycle "
    "built today, and would probably be able to repair it.\n"
)
